// Whole answers of a model API, good and bad, over the real provider (wire_fuzz.hpp).

#include "fuzz/fuzz.hpp"
#include "fuzz/wire_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = holdfast::fuzz::text_of(data, size);
  holdfast::fuzz::call_model(input, false, 0);
  return 0;
}
