// A failed call as tests/data/provider-errors.jsonl records it, one line: from evidence to class.

#include "core/classify.hpp"
#include "core/run_codec.hpp"
#include "fuzz/fuzz.hpp"

using namespace holdfast;
using fuzz::expect;

namespace {

constexpr Duration kCentury = std::chrono::hours(24 * 36'525);

Evidence read_evidence(const Json& json) {
  Evidence evidence;
  if (const Json* status = find_member(json, "status"); status && status->is_number_integer()) {
    evidence.status = status->get<int>();
  }
  if (const Json* headers = find_member(json, "headers"); headers && headers->is_object()) {
    for (const auto& [name, value] : headers->items()) {
      if (value.is_string()) evidence.headers[lower_case(name)] = value.get<std::string>();
    }
  }
  evidence.body = text_member(json, "body");
  if (const Json* transport = find_member(json, "transport_error")) {
    evidence.transport_kind =
        transport->is_string() ? transport->get<std::string>() : text_member(*transport, "kind");
  }
  evidence.provider = "main";
  evidence.model = "demo";
  evidence.body_was_success = evidence.status && *evidence.status / 100 == 2;
  return evidence;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto json = parse_json(fuzz::text_of(data, size));
  if (!json) return 0;
  const Evidence evidence = read_evidence(*json);
  const Failure failure = classify(evidence);
  expect(failure == classify(evidence), "the same evidence has the same class");
  expect(!failure.message.empty() && fuzz::is_utf8(failure.message), "a failure can be told",
         failure.message);
  expect(!fuzz::contains(failure.message, "\n"), "a message is one line", failure.message);
  expect(failure.message.size() < 2048, "a message is bounded", failure.message);
  expect(failure.code.size() < 256 && fuzz::is_utf8(failure.code), "a code is a word",
         failure.code);
  expect(!failure.retry_after ||
             (*failure.retry_after > Duration::zero() && *failure.retry_after <= kCentury),
         "a hint is a wait");
  expect(!is_retryable(failure.cls) || falls_back(failure.cls),
         "what may be retried may be tried elsewhere");
  expect(decode_failure(encode(failure)) == failure, "a failure is stored as it is",
         dump_json(encode(failure)));
  return 0;
}
