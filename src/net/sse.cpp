#include "net/sse.hpp"

#include <utility>

namespace holdfast {

std::vector<SseEvent> SseParser::feed(std::string_view bytes) {
  std::vector<SseEvent> out;
  for (char c : bytes) {
    if (c == '\n' && after_cr_) {
      after_cr_ = false;
      continue;
    }
    after_cr_ = c == '\r';
    if (c == '\r' || c == '\n') {
      end_line(&out);
    } else {
      line_ += c;
    }
  }
  return out;
}

std::vector<SseEvent> SseParser::finish() {
  std::vector<SseEvent> out;
  if (!line_.empty()) end_line(&out);
  end_event(&out);
  return out;
}

void SseParser::end_line(std::vector<SseEvent>* out) {
  std::string line = std::exchange(line_, {});
  if (std::exchange(at_start_, false) && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  if (line.empty()) return end_event(out);
  const std::size_t colon = line.find(':');
  const std::string field = line.substr(0, colon);
  std::string value = colon == std::string::npos ? std::string() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.erase(0, 1);
  if (field == "data") {
    if (has_data_) open_.data += '\n';
    open_.data += value;
    has_data_ = true;
  } else if (field == "event") {
    open_.event = value;
  }
  // Comments have an empty field name; `id` and `retry` are for clients that reconnect.
}

void SseParser::end_event(std::vector<SseEvent>* out) {
  if (has_data_) out->push_back(std::move(open_));
  open_ = {};
  has_data_ = false;
}

std::vector<SseEvent> LineParser::feed(std::string_view bytes) {
  std::vector<SseEvent> out;
  for (char c : bytes) {
    if (c == '\n') {
      end_line(&out);
    } else {
      line_ += c;
    }
  }
  return out;
}

std::vector<SseEvent> LineParser::finish() {
  std::vector<SseEvent> out;
  end_line(&out);
  return out;
}

void LineParser::end_line(std::vector<SseEvent>* out) {
  std::string line = std::exchange(line_, {});
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  if (!line.empty()) out->push_back({{}, std::move(line)});
}

}  // namespace holdfast
