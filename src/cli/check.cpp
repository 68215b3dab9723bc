// `verify`, `doctor`, `backup`, `migrate`: the store and the setup.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

std::string_view word_of(Finding::Grade grade) {
  switch (grade) {
    case Finding::Grade::ok:
      return "ok";
    case Finding::Grade::warning:
      return "warning";
    case Finding::Grade::bad:
      return "bad";
  }
  return "";
}

Colour colour_of(Finding::Grade grade) {
  switch (grade) {
    case Finding::Grade::ok:
      return Colour::green;
    case Finding::Grade::warning:
      return Colour::yellow;
    case Finding::Grade::bad:
      return Colour::red;
  }
  return Colour::none;
}

int print_findings(Invocation& call, const std::vector<Finding>& findings) {
  Json all = Json::array();
  for (const auto& finding : findings) {
    all.push_back(
        {{"grade", word_of(finding.grade)}, {"subject", finding.subject}, {"text", finding.text}});
    if (call.out.json()) continue;
    const auto word = fmt::format("{:<7}", word_of(finding.grade));
    call.out.line(fmt::format("{} {}: {}", call.out.paint(colour_of(finding.grade), word),
                              safe_line(finding.subject), safe_line(finding.text)));
  }
  if (call.out.json()) call.out.value(all);
  const bool any_bad = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.grade == Finding::Grade::bad;
  });
  return any_bad ? kFailed : kDone;
}

}  // namespace

int verify_store(Invocation& call) { return print_findings(call, call.host.runtime().verify()); }

/// What stops the others from starting is a finding here: this is where people look for it.
int examine_setup(Invocation& call) {
  std::vector<Finding> findings;
  std::string subject = "configuration";
  try {
    const auto file = call.host.config_file();
    call.host.options();
    findings.push_back({file ? Finding::Grade::ok : Finding::Grade::warning, subject,
                        file ? fmt::format("{} is read", *file)
                             : std::string("no file: defaults, and no agents; `holdfast init` "
                                           "writes one")});
    subject = "setup";
    auto& runtime = call.host.runtime();
    const auto more = runtime.doctor();
    findings.insert(findings.end(), more.begin(), more.end());
  } catch (const RefusedError& error) {
    findings.push_back({Finding::Grade::bad, subject, error.what()});
    print_findings(call, findings);
    return static_cast<int>(error.refusal());
  } catch (const StoreError& error) {
    findings.push_back({Finding::Grade::bad, "store", error.what()});
    print_findings(call, findings);
    return kFailed;
  }
  return print_findings(call, findings);
}

int backup_store(Invocation& call) {
  const auto& file = call.args.operand();
  std::error_code error;
  if (std::filesystem::exists(file, error)) {
    throw RefusedError(Refusal::conflict,
                       fmt::format("{}: exists already; a backup overwrites nothing", file));
  }
  call.host.runtime().backup(file);
  if (call.out.json()) {
    call.out.value({{"file", clean_utf8(file)}});
  } else {
    call.out.line(safe_line(file));
  }
  return kDone;
}

int migrate_store(Invocation& call) {
  const auto report = call.host.migrate();
  if (call.out.json()) {
    call.out.value({{"before", report.before}, {"after", report.after}});
  } else if (report.before == report.after) {
    call.out.line(fmt::format("schema version {}: nothing to do", report.after));
  } else {
    call.out.line(fmt::format("schema version {} → {}", report.before, report.after));
  }
  return kDone;
}

}  // namespace holdfast
