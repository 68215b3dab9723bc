// Ollama's own chat API, whole and as a stream of lines.

#include <utility>

#include "base/text.hpp"
#include "provider/dialect.hpp"
#include "provider/ollama_wire.hpp"
#include "provider/providers.hpp"

namespace holdfast {
namespace {

class OllamaStream final : public AnswerStream {
 public:
  std::variant<std::string, Malformed> add(const Json& event) override {
    return assembler_.add(event);
  }
  bool has_end() const override { return assembler_.has_end(); }
  bool is_over() const override { return assembler_.has_end(); }
  std::variant<RawReply, Malformed> finish() const override { return assembler_.finish(); }
  ModelUsage usage() const override { return {}; }

 private:
  OllamaAssembler assembler_;
};

class OllamaDialect final : public Dialect {
 public:
  explicit OllamaDialect(const ProviderSpec& spec)
      : url_(base_with(base_url_of(spec), "/api") + "/chat") {}

  std::string url(const std::string&, bool) const override { return url_; }

  /// The server on one's own machine wants no key; those in front of it, and the hosted one, do.
  Headers headers(const std::string& key) const override {
    if (key.empty()) return {};
    return {{"Authorization", "Bearer " + key}};
  }

  std::string render(const Target& target, const ModelRequest& request,
                     bool stream) const override {
    return render_ollama_request(target.model, request, stream);
  }

  std::variant<RawReply, Malformed> read(const Json& answer) const override {
    OllamaAssembler assembler;
    auto added = assembler.add(answer);
    if (const auto* malformed = std::get_if<Malformed>(&added)) return *malformed;
    return assembler.finish();
  }

  std::unique_ptr<AnswerStream> start_stream() const override {
    return std::make_unique<OllamaStream>();
  }

  Json error_in(const Json& json) const override { return plain_error(json); }

  bool streams_lines() const override { return true; }

 private:
  const std::string url_;
};

}  // namespace

std::unique_ptr<Provider> make_ollama(const ProviderSpec& spec, Env& env, const Limits& limits,
                                      std::vector<std::string> key_names) {
  return make_http_provider(spec, std::make_unique<OllamaDialect>(spec), env, limits,
                            std::move(key_names));
}

}  // namespace holdfast
