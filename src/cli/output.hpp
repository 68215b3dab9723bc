#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/safe_text.hpp"
#include "holdfast/json.hpp"

namespace holdfast {

/// Standard output was closed by its reader. Thrown by Output, not derived from std::exception.
struct OutputClosed {};
/// Standard output takes no more (a full disk).
struct OutputFailed {
  std::string why;
};

enum class Colour { none, bold, dim, red, green, yellow, blue };

/// Where results and remarks go. Results to standard output; everything else to standard error.
/// All methods may be called from any thread.
class Output {
 public:
  struct Setup {
    std::function<void(std::string_view)> write_result;  ///< may throw OutputClosed, OutputFailed
    std::function<void(std::string_view)> write_note;    ///< never throws
    std::function<bool()> reader_is_gone;                ///< of results; null: not known
    bool result_is_terminal = false;
    bool note_is_terminal = false;
    bool colours = false;  ///< where there is a terminal
    bool json = false;
  };
  explicit Output(Setup setup) : setup_(std::move(setup)) {}

  bool json() const { return setup_.json; }
  void set_json(bool on) { setup_.json = on; }
  bool result_is_terminal() const { return setup_.result_is_terminal; }
  bool note_is_terminal() const { return setup_.note_is_terminal; }

  /// A line of result. Its parts must be safe already (`safe_line`, `safe_text`).
  void line(std::string_view text);
  /// Result as it is.
  void raw(std::string_view text);
  /// One JSON value on one line.
  void value(const Json&);
  /// For those who wait with nothing to print: throws OutputClosed where nobody reads results.
  void need_reader() const;
  /// A remark on standard error. It clears a status line first.
  void note(std::string_view text);
  /// An error: `holdfast: …`.
  void error(std::string_view text);
  /// The live line at the end of standard error; on terminals only. Empty: none.
  void status(std::string_view text);

  std::string paint(Colour, std::string_view text) const;       ///< for results
  std::string paint_note(Colour, std::string_view text) const;  ///< for remarks

 private:
  void clear_status();

  Setup setup_;
  std::mutex mutex_;
  bool status_shown_ = false;
};

/// At most `width` characters of `safe_line`, the last a `…` where something was cut.
std::string shorten(std::string_view text, std::size_t width);
std::string shorten_json(const Json& value, std::size_t width);
/// Characters (code points) of valid UTF-8, colours not counted.
std::size_t text_width(std::string_view text);

/// Columns of equal width, two blanks between; the last is not padded. Cells must be safe.
std::string render_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace holdfast
