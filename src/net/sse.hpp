#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

/// One server-sent event.
struct SseEvent {
  std::string event;  ///< its name; empty where none was given
  std::string data;   ///< its data lines, joined by line feeds
  friend bool operator==(const SseEvent&, const SseEvent&) = default;
};

/// Server-sent events from bytes that come in any pieces: LF, CRLF and CR line ends, comments,
/// several data lines, a byte order mark, a last event without its blank line. One thread.
class SseParser {
 public:
  /// Events that these bytes complete.
  std::vector<SseEvent> feed(std::string_view bytes);

  /// The stream is over: what was still open.
  std::vector<SseEvent> finish();

 private:
  void end_line(std::vector<SseEvent>* out);
  void end_event(std::vector<SseEvent>* out);

  std::string line_;
  SseEvent open_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool at_start_ = true;
};

/// Lines of JSON in any pieces, each as an event without a name; blank lines are none. One thread.
class LineParser {
 public:
  std::vector<SseEvent> feed(std::string_view bytes);
  std::vector<SseEvent> finish();

 private:
  void end_line(std::vector<SseEvent>* out);

  std::string line_;
};

}  // namespace holdfast
