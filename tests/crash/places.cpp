#include "crash/places.hpp"

#include <cctype>
#include <set>

#include "crash/harness.hpp"

namespace holdfast::crash {

bool names_one_of(const std::string& place, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (place.rfind(word, 0) == 0 || place.rfind("store." + word, 0) == 0) return true;
  }
  return false;
}

bool is_in_the_lock(const std::string& place) {
  return names_one_of(place, {"commit.", "checkpoint.", "migrate."});
}

bool is_of_a_worker(const std::string& place) {
  return is_in_the_lock(place) ||
         names_one_of(place, {"claim.", "enqueue.", "fence.", "unfence.", "record.", "renew.",
                              "settle.", "model.", "model_call.", "tool.", "work.", "probe.",
                              "report_worker.", "forget_worker.", "admit_call.", "note_call."});
}

bool is_of_a_segment(const std::string& place) {
  if (place == "commit.before" && is_postgres()) return true;
  // The engine's own places stand around the store's: usually one of both is enough. Around those
  // of circuits there are none.
  const bool is_usual = is_long() || place.rfind("store.", 0) != 0 ||
                        names_one_of(place, {"admit_call.", "note_call."});
  return is_usual && is_of_a_worker(place) && !is_in_the_lock(place) &&
         !names_one_of(place, {"enqueue.", "report_worker.", "forget_worker."});
}

bool is_of_an_operator(const std::string& place) {
  return names_one_of(
      place, {"answer.", "cancel.", "expire", "purge.", "reap.", "redrive.", "resolve.", "wake."});
}

bool is_of_a_command(const std::string& place) {
  return names_one_of(place, {"start.", "hand_over.", "acknowledge", "backup."});
}

bool is_out_of_reach(const std::string& place) {
  // A server copies its log back by itself, and its backups are made by its own tools.
  return is_postgres() && names_one_of(place, {"checkpoint.", "backup."});
}

namespace {

bool is_chosen(const std::string& place) {
  // On a server each place costs more time.
  static const std::set<std::string> kOneOfEach = {"acknowledge.after",
                                                   "claim.after",
                                                   "commit.before",
                                                   "fence.after",
                                                   "migrate.before",
                                                   "model.before",
                                                   "model_call.after",
                                                   "probe.before",
                                                   "record.after",
                                                   "record.before",
                                                   "renew.after",
                                                   "settle.before",
                                                   "store.admit_call.after",
                                                   "store.answer.after",
                                                   "store.cancel.after",
                                                   "store.enqueue.after",
                                                   "store.expire_leases.after",
                                                   "store.forget_worker.before",
                                                   "store.hand_over.after",
                                                   "store.note_call.after",
                                                   "store.purge.before",
                                                   "store.reap.after",
                                                   "store.redrive.after",
                                                   "store.report_worker.after",
                                                   "store.resolve.after",
                                                   "store.start.after",
                                                   "store.wake.after",
                                                   "tool.before",
                                                   "unfence.after",
                                                   "work.after"};
  // A sweep passes its own places right beside the store's.
  if (!is_long() && (place.rfind("reap.", 0) == 0 || place.rfind("expire.", 0) == 0)) return false;
  return is_long() || !is_postgres() || kOneOfEach.contains(place);
}

}  // namespace

std::vector<std::string> places(const std::function<bool(const std::string&)>& fits) {
  std::vector<std::string> found;
  for (const std::string& place : failpoints()) {
    if (fits(place) && is_chosen(place) && !is_out_of_reach(place)) found.push_back(place);
  }
  return found;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.find(' '));
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

}  // namespace holdfast::crash
