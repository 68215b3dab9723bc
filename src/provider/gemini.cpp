// Gemini generateContent, whole and as a stream.

#include <cctype>
#include <utility>

#include "base/text.hpp"
#include "provider/dialect.hpp"
#include "provider/gemini_wire.hpp"
#include "provider/providers.hpp"

namespace holdfast {
namespace {

class GeminiStream final : public AnswerStream {
 public:
  std::variant<std::string, Malformed> add(const Json& event) override {
    return assembler_.add(event);
  }
  bool has_end() const override { return assembler_.has_end(); }
  bool is_over() const override { return assembler_.is_over(); }
  std::variant<RawReply, Malformed> finish() const override { return assembler_.finish(); }
  ModelUsage usage() const override { return assembler_.usage(); }

 private:
  GeminiAssembler assembler_;
};

/// A model's name inside a path; names may hold slashes of their own.
std::string path_of_model(const std::string& model) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : model) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out.find('/') == std::string::npos ? "models/" + out : out;
}

/// Does an address end with a version of the API, such as `/v1beta`?
bool has_version(const std::string& base) {
  const std::string last = base.substr(base.rfind('/') + 1);
  return last.size() >= 2 && last[0] == 'v' &&
         std::isdigit(static_cast<unsigned char>(last[1])) != 0;
}

class GeminiDialect final : public Dialect {
 public:
  explicit GeminiDialect(const ProviderSpec& spec) : base_(base_with(base_url_of(spec), "")) {
    if (!has_version(base_)) base_ += "/v1beta";
  }

  std::string url(const std::string& model, bool stream) const override {
    return base_ + "/" + path_of_model(model) +
           (stream ? ":streamGenerateContent?alt=sse" : ":generateContent");
  }

  Headers headers(const std::string& key) const override {
    if (key.empty()) return {};
    return {{"x-goog-api-key", key}};
  }

  std::string render(const Target& target, const ModelRequest& request, bool) const override {
    return render_gemini_request(target, request);
  }

  /// A stream that somebody on the way made one list of is an answer too.
  std::variant<RawReply, Malformed> read(const Json& answer) const override {
    GeminiAssembler assembler;
    for (const Json& response : answer.is_array() ? answer : Json::array({answer})) {
      auto added = assembler.add(response);
      if (const auto* malformed = std::get_if<Malformed>(&added)) return *malformed;
    }
    return assembler.finish();
  }

  std::unique_ptr<AnswerStream> start_stream() const override {
    return std::make_unique<GeminiStream>();
  }

  /// In a list, the last one tells how it ended.
  Json error_in(const Json& json) const override {
    return plain_error(json.is_array() && !json.empty() ? json.back() : json);
  }

 private:
  std::string base_;
};

}  // namespace

std::unique_ptr<Provider> make_gemini(const ProviderSpec& spec, Env& env, const Limits& limits,
                                      std::vector<std::string> key_names) {
  return make_http_provider(spec, std::make_unique<GeminiDialect>(spec), env, limits,
                            std::move(key_names));
}

}  // namespace holdfast
