// Event streams of a model API (wire_fuzz.hpp): the answer is the same however its bytes come.

#include <algorithm>

#include "fuzz/fuzz.hpp"
#include "fuzz/wire_fuzz.hpp"
#include "net/sse.hpp"

using namespace holdfast;
using fuzz::expect;

namespace {

std::vector<SseEvent> parse(std::string_view bytes, std::size_t piece_bytes) {
  SseParser parser;
  std::vector<SseEvent> events;
  const auto take = [&](std::vector<SseEvent> more) {
    events.insert(events.end(), more.begin(), more.end());
  };
  while (!bytes.empty()) {
    take(parser.feed(bytes.substr(0, piece_bytes)));
    bytes.remove_prefix(std::min(piece_bytes, bytes.size()));
  }
  take(parser.finish());
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  const auto events = parse(input, size == 0 ? 1 : size);
  expect(parse(input, 1) == events && parse(input, 3) == events,
         "events are the same however their bytes come");

  const std::string stream = "200 text/event-stream\n\n" + std::string(input);
  const std::string whole = fuzz::call_model(stream, true, 0);
  const std::string pieces = fuzz::call_model(stream, true, 5);
  expect(whole == pieces, "the answer is the same however its bytes come", whole + "\n" + pieces);
  return 0;
}
