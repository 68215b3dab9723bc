// `list`, `show`, `why`: runs as people look at them.

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/format.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

/// Does a live worker take runs of this agent from this queue? `workers` as the runtime gives them.
bool is_served(const Json& workers, const Run& run) {
  const auto holds = [](const Json& list, const std::string& word) {
    return std::find(list.begin(), list.end(), Json(word)) != list.end();
  };
  for (const auto& worker : workers) {
    const auto agents = worker.value("agents", Json::array());
    const auto queues = worker.value("queues", Json::array());
    if (holds(agents, run.agent) && (queues.empty() || holds(queues, run.queue))) return true;
  }
  return false;
}

std::string remark(const Run& run, const Json& workers) {
  if (run.abandoned) return "abandoned";
  if (run.reason && run.reason->text() != run.status.text()) {
    return safe_line(run.reason->text());
  }
  if (run.status.is(Status::queued) && !is_served(workers, run)) return "no worker";
  if (run.status.is(Status::queued) && run.error) return to_word(run.error->cls).data();
  return "";
}

/// A run that was put there by SQL takes its agent's budget at its first claim.
std::string budget_of(const Run& run, std::string_view unknown) {
  return run.max_requeues < 0 ? std::string(unknown) : std::to_string(run.max_requeues);
}

std::string table_of(const RunPage& page, const Json& workers, const Output& out) {
  std::vector<std::vector<std::string>> rows = {
      {"ID", "STATUS", "REMARK", "AGENT", "QUEUE", "PRIO", "RETRIES", "CREATED", "INPUT"}};
  for (const auto& run : page.runs) {
    rows.push_back(
        {safe_line(run.id), out.paint(colour_of(run.status), safe_line(run.status.text())),
         remark(run, workers), shorten(run.agent, 24), shorten(run.queue, 16),
         std::to_string(run.priority), fmt::format("{}/{}", run.requeue_count, budget_of(run, "-")),
         format_time(run.created_at), shorten_json(run.input, 40)});
  }
  return render_table(rows);
}

class Sheet {
 public:
  explicit Sheet(const Output& out) : out_(&out) {}
  void add(std::string_view name, const std::string& value) {
    if (!value.empty()) {
      text_ +=
          fmt::format("{} {}\n", out_->paint(Colour::bold, fmt::format("{:<14}", name)), value);
    }
  }
  void add(std::string_view name, const std::optional<WallTime>& time) {
    if (time) add(name, format_time(*time));
  }
  const std::string& text() const { return text_; }

 private:
  const Output* out_;
  std::string text_;
};

std::string_view verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::undecided:
      return "undecided";
    case Verdict::approved:
      return "approved";
    case Verdict::denied:
      return "denied";
    case Verdict::expired:
      return "expired";
  }
  return "";
}

void add_wait(Sheet& sheet, const Run& run) {
  if (!run.waiting_for) return;
  const auto& wait = *run.waiting_for;
  sheet.add("waiting for", wait.kind == WaitKind::approval ? "approval" : "input");
  sheet.add("  turn", safe_line(wait.turn));
  sheet.add("  prompt", safe_line(wait.prompt));
  sheet.add("  deadline", wait.deadline);
  for (const auto& call : wait.calls) {
    sheet.add("  call " + safe_line(call.id),
              fmt::format("{} {} {}", safe_line(call.name), safe_line(dump_json(call.arguments)),
                          wait.kind == WaitKind::approval ? verdict_word(call.decision) : ""));
  }
  if (!wait.schema.is_null()) sheet.add("  schema", safe_line(dump_json(wait.schema)));
}

void add_pending(Sheet& sheet, const Run& run) {
  if (!run.pending) return;
  const auto& fence = *run.pending;
  sheet.add("write pending", fmt::format("{} ({}) since {}", safe_line(fence.step_key),
                                         to_word(fence.effect), format_time(fence.since)));
  sheet.add("  arguments", safe_line(dump_json(fence.arguments)));
  sheet.add("  key", safe_line(fence.idempotency_key));
}

void add_failure(Sheet& sheet, const Run& run) {
  if (!run.error) return;
  const auto& failure = *run.error;
  sheet.add("error",
            fmt::format("{}{}{}: {}", to_word(failure.cls), failure.code.empty() ? "" : " ",
                        safe_line(failure.code), safe_line(failure.message)));
}

std::string sheet_of(const Run& run, const Output& out) {
  Sheet sheet(out);
  sheet.add("run", safe_line(run.id));
  auto status = out.paint(colour_of(run.status), safe_line(run.status.text()));
  if (run.reason && run.reason->text() != run.status.text()) {
    status += fmt::format(" ({})", safe_line(run.reason->text()));
  }
  if (run.abandoned) status += " (abandoned: its process is gone)";
  sheet.add("status", status);
  sheet.add("agent", safe_line(run.agent));
  sheet.add("queue", fmt::format("{}, priority {}", safe_line(run.queue), run.priority));
  sheet.add("origin", safe_line(run.origin.text()));
  for (const auto& [key, value] : run.labels) {
    sheet.add("label", fmt::format("{}={}", safe_line(key), safe_line(value)));
  }
  sheet.add("input", safe_line(answer_text(run.input)));
  if (run.answer) sheet.add("answer", safe_text(answer_text(*run.answer)));
  if (run.finish == "length")
    sheet.add("answer cut", "at the model's token limit: it is not whole");
  add_failure(sheet, run);
  add_wait(sheet, run);
  add_pending(sheet, run);
  sheet.add("created", run.created_at);
  if (run.status.is(Status::queued)) sheet.add("available", run.available_at);
  sheet.add("started", run.started_at);
  sheet.add("finished", run.finished_at);
  if (run.claimed_by) {
    sheet.add("claimed by", fmt::format("{} (claim {})", safe_line(*run.claimed_by), run.claim));
  }
  sheet.add("lease until", run.lease_expires_at);
  sheet.add("retries", fmt::format("{} of {} used, {} of them lost workers; redriven {} times",
                                   run.requeue_count, budget_of(run, "its agent's"),
                                   run.reclaim_count, run.redrive_count));
  sheet.add("model calls", fmt::format("{}, {} tokens, ${:.4f}", run.iterations,
                                       run.usage.total_tokens, run.usage.cost_usd));
  return sheet.text();
}

}  // namespace

int list_runs(Invocation& call) {
  const auto& args = call.args;
  ListFilter filter;
  filter.status = args.find_text("--status");
  filter.reason = args.find_text("--reason");
  filter.agent = args.find_text("--agent");
  filter.queue = args.find_text("--queue");
  filter.labels = args.labels();
  filter.limit = args.find_integer("--limit", 1).value_or(filter.limit);
  filter.after = args.find_text("--after");
  auto& runtime = call.host.runtime();
  const auto page = runtime.list(filter);
  if (call.out.json()) {
    Json runs = Json::array();
    for (const auto& run : page.runs) runs.push_back(to_json(run));
    call.out.value({{"runs", std::move(runs)}, {"next", page.next ? Json(*page.next) : Json()}});
    return kDone;
  }
  if (page.runs.empty()) {
    call.out.note("no runs");
    return kDone;
  }
  call.out.raw(table_of(page, runtime.workers(), call.out));
  if (page.next) call.out.note(fmt::format("more: --after {}", safe_line(*page.next)));
  return kDone;
}

int show_run(Invocation& call) {
  const auto run = call.host.runtime().get(call.args.operand());
  if (call.out.json()) {
    call.out.value(to_json(run));
  } else {
    call.out.raw(sheet_of(run, call.out));
  }
  return kDone;
}

int explain_run(Invocation& call) {
  const auto why = call.host.runtime().why(call.args.operand());
  if (call.out.json()) {
    call.out.value(why);
    return kDone;
  }
  call.out.line(safe_text(why.value("text", "")));
  const auto commands = why.value("commands", Json::array());
  if (!commands.empty()) call.out.line("\n" + call.out.paint(Colour::bold, "What you can do:"));
  for (const auto& command : commands) call.out.line("  " + shorten_json(command, 400));
  return kDone;
}

}  // namespace holdfast
