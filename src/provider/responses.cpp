// OpenAI Responses, whole and as a stream.

#include <optional>
#include <utility>

#include "base/text.hpp"
#include "provider/dialect.hpp"
#include "provider/providers.hpp"
#include "provider/responses_wire.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMaxItems = 10000;

/// Waits for the whole response at the stream's end; the pieces before it are only shown.
class ResponsesStream final : public AnswerStream {
 public:
  std::variant<std::string, Malformed> add(const Json& event) override {
    const std::string type = text_member(event, "type");
    if (type.empty()) return Malformed{"an event of the stream has no type"};
    if (type == "response.output_text.delta") return text_member(event, "delta");
    if (type == "response.output_item.done") {
      const Json* item = find_given(event, "item");
      if (item == nullptr || items_.size() >= kMaxItems) {
        return Malformed{"an output item is " + shape_of(item)};
      }
      items_.push_back(*item);
    } else if (type == "response.completed" || type == "response.incomplete") {
      const Json* response = find_given(event, "response");
      if (response == nullptr || !response->is_object()) {
        return Malformed{"the response is " + shape_of(response)};
      }
      response_ = *response;
    }
    // The other events tell again, in pieces, what stands in these.
    return std::string();
  }

  bool has_end() const override { return response_.has_value(); }
  bool is_over() const override { return response_.has_value(); }
  ModelUsage usage() const override { return {}; }

  std::variant<RawReply, Malformed> finish() const override {
    return read_response_object(*response_, items_);
  }

 private:
  std::vector<Json> items_;
  std::optional<Json> response_;
};

/// `{"error": …}` of a response that failed, whether or not it says why.
Json error_of_failed(const Json& response) {
  const Json* error = find_given(response, "error");
  return Json{{"error", error == nullptr ? Json() : *error}};
}

class ResponsesDialect final : public Dialect {
 public:
  explicit ResponsesDialect(const ProviderSpec& spec)
      : url_(base_with(base_url_of(spec), "") + "/responses") {}

  std::string url(const std::string&, bool) const override { return url_; }

  Headers headers(const std::string& key) const override {
    if (key.empty()) return {};
    return {{"Authorization", "Bearer " + key}};
  }

  std::string render(const Target& target, const ModelRequest& request,
                     bool stream) const override {
    return render_responses_request(target, request, stream);
  }

  std::variant<RawReply, Malformed> read(const Json& answer) const override {
    return read_response_object(answer);
  }

  std::unique_ptr<AnswerStream> start_stream() const override {
    return std::make_unique<ResponsesStream>();
  }

  Json error_in(const Json& json) const override {
    const std::string type = text_member(json, "type");
    if (type == "response.failed") {
      const Json* response = find_given(json, "response");
      return error_of_failed(response == nullptr ? json : *response);
    }
    if (text_member(json, "status") == "failed") return error_of_failed(json);
    if (Json error = plain_error(json); !error.is_null()) return error;
    if (type != "error") return nullptr;
    // In recordings the error stands in a member of its own; by the schema it is flat.
    Json flat = json;
    flat.erase("type");
    return Json{{"error", std::move(flat)}};
  }

 private:
  const std::string url_;
};

}  // namespace

std::unique_ptr<Provider> make_responses(const ProviderSpec& spec, Env& env, const Limits& limits,
                                         std::vector<std::string> key_names) {
  return make_http_provider(spec, std::make_unique<ResponsesDialect>(spec), env, limits,
                            std::move(key_names));
}

}  // namespace holdfast
