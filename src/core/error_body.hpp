#pragma once

// What an error body says, whatever its shape: nested `error` objects, flat objects, lists, strings
// with JSON inside, Google details, edge-network JSON, HTML, plain text. Pure and bounded.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

struct ErrorBody {
  bool is_json = false;
  bool is_html = false;
  std::vector<std::string> codes;    ///< as written, the most specific first; never plain numbers
  std::vector<std::string> types;    ///< `type`, and the canonical status words of Google APIs
  std::vector<std::string> endings;  ///< finish and stop reasons of an answer
  std::optional<int> status;         ///< an HTTP status that the body names, 400 to 599
  std::string text;                  ///< what it says to people, uncut
  std::optional<double> retry_after_ms;
};

/// Never throws. `content_type` may be empty.
ErrorBody read_error_body(std::string_view body, std::string_view content_type);

}  // namespace holdfast
