#include "cli/support.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "base/text.hpp"
#include "cli/format.hpp"

namespace holdfast {

int exit_code_of(const Run& run) {
  const auto status = run.status.known();
  if (!status) return kFailed;
  switch (*status) {
    case Status::completed:
      return kDone;
    case Status::waiting_for_approval:
    case Status::waiting_for_input:
      return kSuspended;
    case Status::failed:
    case Status::cancelled:
    case Status::queued:
    case Status::running:
      return kFailed;
  }
  return kFailed;
}

int for_each_id(Invocation& call, const std::function<int(const std::string& id)>& action) {
  int first = kDone;
  const auto note = [&](int code) {
    if (first == kDone) first = code;
  };
  // Most messages name the run already.
  const auto tell = [&](const std::string& id, const std::string& text) {
    call.out.error(text.find(id) == text.npos ? fmt::format("{}: {}", id, text) : text);
  };
  const auto& ids = call.args.operands();
  for (const auto& id : ids) {
    try {
      note(action(id));
    } catch (const RefusedError& error) {
      tell(id, error.what());
      note(static_cast<int>(error.refusal()));
    } catch (const StoreError& error) {
      tell(id, error.what());
      note(kFailed);
    }
  }
  return first;
}

Operator operator_of(Invocation& call) {
  Operator by;
  by.actor = clean_utf8(call.args.find_text("--as").value_or(call.host.user_name()));
  if (by.actor.empty()) {
    throw RefusedError(Refusal::usage, "--as: expected a name, got an empty one");
  }
  by.note = clean_utf8(call.args.find_text("--note").value_or(""));
  return by;
}

std::string read_text(const std::string& path, std::size_t limit, const std::string& limit_name) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) {
      throw RefusedError(Refusal::usage,
                         fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    }
  }
  std::istream& stream = path == "-" ? std::cin : file;
  std::string text;
  char buffer[65536];
  while (stream.read(buffer, sizeof buffer) || stream.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > limit) {
      throw RefusedError(Refusal::usage,
                         fmt::format("{}: larger than the limit of {} bytes ({})",
                                     path == "-" ? "standard input" : path, limit, limit_name));
    }
  }
  if (stream.bad()) {
    throw RefusedError(Refusal::usage,
                       fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  return text;
}

Json input_of(Invocation& call) {
  const auto text = call.args.find_text("--input");
  const auto file = call.args.find_text("--input-file");
  const bool has_json = call.args.has("--input-json");
  if (int{text.has_value()} + int{file.has_value()} + int{has_json} != 1) {
    throw RefusedError(Refusal::usage,
                       "give the request with one of --input TEXT, --input-file FILE (- for "
                       "standard input) or --input-json JSON");
  }
  if (text) return clean_utf8(*text);
  const auto& limits = call.host.options().limits;
  if (has_json) return *call.args.find_json("--input-json", limits.depth);
  return clean_utf8(read_text(*file, limits.request_bytes, "[limits] request"));
}

void print_run(Invocation& call, const Run& run, const std::string& text) {
  if (call.out.json()) {
    call.out.value(to_json(run));
  } else {
    call.out.line(text);
  }
}

Observer Progress::observer() {
  return [this](const Event& event) { see(event); };
}

void Progress::see(const Event& event) {
  if (!named_) {
    named_ = true;
    out_->note(out_->paint_note(Colour::dim, fmt::format("run {}", safe_line(event.run))));
  }
  const auto kind = event.kind.known();
  if (kind == EventKind::model || kind == EventKind::tool || kind == EventKind::step) ++steps_;
  if (kind == EventKind::model && event.payload.is_object()) {
    const auto usage = event.payload.find("usage");
    if (usage != event.payload.end() && usage->is_object() && usage->contains("total_tokens") &&
        (*usage)["total_tokens"].is_number_integer()) {
      tokens_ += (*usage)["total_tokens"].get<std::int64_t>();
    }
  }
  out_->note(fmt::format("{:>4} {} {}", event.sequence,
                         out_->paint_note(Colour::bold, safe_line(event.kind.text())),
                         event_text(event)));
  out_->status(fmt::format("… {} steps, {} tokens", steps_, tokens_));
}

int Progress::finish(const SegmentResult& result, const StopOnSignal& stop) {
  out_->status("");
  const auto& run = result.run;
  if (out_->json()) {
    out_->value(to_json(run));
  } else if (run.answer && run.status.is(Status::completed)) {
    const auto text = answer_text(*run.answer);
    out_->line(out_->result_is_terminal() ? safe_text(text) : text);
  }
  const int code = exit_code_of(run);
  auto remark = state_line(run);
  if (run.error && !run.status.is(Status::completed)) {
    remark += ": " + safe_line(run.error->message);
  }
  if (run.reason && run.reason->is(Reason::budget_exhausted)) remark += ": the answer is partial";
  if (run.finish == "length") remark += ": the answer was cut at the model's token limit";
  if (code == kSuspended) {
    remark += fmt::format("; `holdfast why {}` says what it waits for", safe_line(run.id));
  } else if (code == kFailed && !run.status.is(Status::cancelled)) {
    remark += fmt::format("; `holdfast why {}` says more", safe_line(run.id));
  }
  out_->note(out_->paint_note(colour_of(run.status), remark));
  if (stop.is_asked() && run.status.is(Status::completed)) {
    out_->note(
        "holdfast: it completed all the same: what was under way when it was asked to stop was its "
        "last step");
  }
  return code;
}

StopOnSignal::StopOnSignal(Invocation& call, std::string_view second) : host_(&call.host) {
  auto remark = fmt::format(
      "holdfast: stopping at the next boundary; what is under way is finished first; a second "
      "signal {}",
      second);
  host_->on_signal([&call, source = source_, remark = std::move(remark)](int count) mutable {
    if (count > 1) call.host.leave(kInterrupted);
    call.out.note(remark);
    source.request_stop();
  });
}

StopOnSignal::~StopOnSignal() { host_->on_signal(nullptr); }

}  // namespace holdfast
