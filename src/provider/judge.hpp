#pragma once

#include <string>

#include "core/classify.hpp"
#include "core/model.hpp"
#include "holdfast/runtime.hpp"
#include "net/http.hpp"
#include "net/secrets.hpp"

namespace holdfast {

/// A failed call that was paid for all the same: a stream that broke after it had begun.
class PaidFailure final : public FailureError {
 public:
  PaidFailure(Failure failure, ModelUsage used) : FailureError(std::move(failure)), used_(used) {}
  const ModelUsage& used() const { return used_; }

 private:
  ModelUsage used_;
};

/// Why this process has no key for the provider that a header can hold; empty: it has, or needs
/// none.
std::string key_problem(const ProviderSpec&);

/// Judges what came back from one call of one provider. Every text is bounded and holds none of our
/// keys. One thread.
class Judge {
 public:
  Judge(const ProviderSpec& spec, const Secrets& secrets, const std::string& model,
        const Limits& limits)
      : spec_(spec), secrets_(secrets), model_(model), limits_(limits) {}

  /// No key where one is configured.
  Failure missing_key(const std::string& problem) const;

  /// A broken transfer, or a status that is no success.
  Failure of_response(const HttpResponse&) const;

  /// An error that came with a success status: `body` is what says so. What is no JSON says
  /// nothing that could be judged.
  Failure of_error(const HttpResponse&, std::string body, bool is_json) const;

  /// A stream that ended before its end signal.
  Failure of_cut_stream(const HttpResponse&) const;

  /// A 2xx that is no answer. The body may say why; else the shape is named.
  Failure of_malformed(const HttpResponse&, const std::string& shape,
                       const std::string& body) const;

  /// What a success's own words (an end reason, a filter's result) amount to.
  Failure of_success(const HttpResponse&, std::string body) const;

 private:
  Evidence evidence_of(const HttpResponse&, std::string body) const;
  Evidence success_evidence(const HttpResponse&, std::string body) const;
  Failure clean(Failure) const;

  const ProviderSpec& spec_;
  const Secrets& secrets_;
  const std::string& model_;
  const Limits& limits_;
};

}  // namespace holdfast
