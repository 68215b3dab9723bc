// Chat Completions, as any compatible server speaks it.

#include "base/text.hpp"
#include "provider/chat_stream.hpp"
#include "provider/chat_wire.hpp"
#include "provider/dialect.hpp"
#include "provider/providers.hpp"

namespace holdfast {
namespace {

class ChatStream final : public AnswerStream {
 public:
  std::variant<std::string, Malformed> add(const Json& event) override {
    return assembler_.add(event);
  }
  bool has_end() const override { return assembler_.has_finish(); }
  // The tokens come behind the end, and then `[DONE]`.
  bool is_over() const override { return false; }
  std::variant<RawReply, Malformed> finish() const override { return assembler_.finish(); }
  ModelUsage usage() const override { return assembler_.usage(); }

  Json why_no_end() const override {
    const Json& filter = assembler_.filter_results();
    return filter.is_null() ? Json() : Json{{"prompt_filter_results", filter}};
  }

 private:
  ChatAssembler assembler_;
};

class ChatDialect final : public Dialect {
 public:
  explicit ChatDialect(const ProviderSpec& spec)
      : url_(base_with(base_url_of(spec), "") + "/chat/completions") {}

  std::string url(const std::string&, bool) const override { return url_; }

  Headers headers(const std::string& key) const override {
    if (key.empty()) return {};
    return {{"Authorization", "Bearer " + key}};
  }

  std::string render(const Target& target, const ModelRequest& request,
                     bool stream) const override {
    return render_chat_request(target, request, stream);
  }

  std::variant<RawReply, Malformed> read(const Json& answer) const override {
    return read_chat_answer(answer);
  }

  std::unique_ptr<AnswerStream> start_stream() const override {
    return std::make_unique<ChatStream>();
  }

  /// Routers put the error of a model that has begun to answer into its choice.
  Json error_in(const Json& chunk) const override {
    if (find_given(chunk, "error") != nullptr) return chunk;
    const Json* choices = find_given(chunk, "choices");
    if (choices == nullptr || !choices->is_array() || choices->empty()) return nullptr;
    const Json& choice = choices->front();
    const bool is_error =
        find_given(choice, "error") != nullptr || text_member(choice, "finish_reason") == "error";
    return is_error ? chunk : Json();
  }

 private:
  const std::string url_;
};

}  // namespace

std::unique_ptr<Provider> make_openai(const ProviderSpec& spec, Env& env, const Limits& limits,
                                      std::vector<std::string> key_names) {
  if (spec.api == "responses") return make_responses(spec, env, limits, std::move(key_names));
  if (spec.api != "chat") {
    throw RefusedError(Refusal::usage, "providers." + spec.name + ".api is `" + spec.api +
                                           "`; this build speaks `chat` and `responses`");
  }
  return make_http_provider(spec, std::make_unique<ChatDialect>(spec), env, limits,
                            std::move(key_names));
}

}  // namespace holdfast
