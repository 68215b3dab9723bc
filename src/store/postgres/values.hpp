#pragma once

// Values on their way to the server and back. Parameters and arrays go in the binary format: no
// quoting, and nothing to parse at the other end; results come as text.
//
// PostgreSQL stores no U+0000 in text. Texts that people choose are kept with `\` as `\\` and
// U+0000 as `\0`; JSON needs nothing, its own text has neither.

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/run.hpp"
#include "holdfast/time.hpp"

namespace holdfast::postgres {

/// Valid UTF-8 without U+0000, and back.
std::string escape_text(std::string_view text);
std::string unescape_text(std::string_view text);

/// The 16 bytes of an id; nothing for what is no id.
std::optional<std::string> uuid_bytes(const RunId&);

/// One array parameter.
class Array {
 public:
  enum class Of { numbers, reals, texts, ids };
  explicit Array(Of of) : of_(of) {}

  void add(std::int64_t);
  void add(int value) { add(std::int64_t{value}); }
  void add(bool value) { add(std::int64_t{value ? 1 : 0}); }
  void add(double);
  void add(WallTime value) { add(std::int64_t{value.time_since_epoch().count()}); }
  void add(StoreTime value) { add(std::int64_t{value.time_since_epoch().count()}); }
  /// Escaped.
  void add(const std::string&);
  /// As it is: JSON and words.
  void add_raw(std::string_view);
  /// Throws RefusedError for what is no id.
  void add_id(const RunId&);
  void add_null();
  template <class T>
  void add(const std::optional<T>& value) {
    value ? add(*value) : add_null();
  }
  void add_raw_or_null(const std::optional<std::string>& value) {
    value ? add_raw(*value) : add_null();
  }

  int size() const { return count_; }
  std::string encode() const;

 private:
  void add_bytes(std::string_view);

  Of of_;
  int count_ = 0;
  bool has_null_ = false;
  std::string elements_;
};

/// The parameters of one statement, in order.
class Params {
 public:
  template <class... Values>
  explicit Params(const Values&... values) {
    (add(values), ...);
  }

  void add(std::int64_t);
  void add(int value) { add(std::int64_t{value}); }
  void add(double);
  void add(WallTime value) { add(std::int64_t{value.time_since_epoch().count()}); }
  void add(StoreTime value) { add(std::int64_t{value.time_since_epoch().count()}); }
  void add(const std::string&);  ///< escaped
  void add(const Array& array) { add_value(array.encode(), true); }
  void add_raw(std::string_view text) { add_value(std::string(text), false); }
  void add_null();
  template <class T>
  void add(const std::optional<T>& value) {
    value ? add(*value) : add_null();
  }

  int size() const { return static_cast<int>(values_.size()); }
  std::vector<const char*> pointers() const;
  const std::vector<int>& lengths() const { return lengths_; }
  const std::vector<int>& formats() const { return formats_; }

 private:
  void add_value(std::string bytes, bool is_binary);

  std::vector<std::optional<std::string>> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

/// The answer to one statement.
class Result {
 public:
  explicit Result(PGresult* result) : result_(result) {}

  int rows() const { return PQntuples(result_.get()); }
  std::string_view command() const { return PQcmdStatus(result_.get()); }
  const PGresult* raw() const { return result_.get(); }

  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  std::string_view view(int row, int column) const {
    return {PQgetvalue(result_.get(), row, column),
            static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
  }
  std::int64_t number(int row, int column) const;
  double real(int row, int column) const;
  std::string text(int row, int column) const { return unescape_text(view(row, column)); }
  WallTime wall(int row, int column) const { return WallTime(Duration(number(row, column))); }

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

/// One row of a result, read column by column.
class RowReader {
 public:
  RowReader(const Result& result, int row) : result_(result), row_(row) {}

  bool next_is_null() const { return result_.is_null(row_, column_); }
  void skip() { ++column_; }
  std::int64_t number() { return result_.number(row_, column_++); }
  int small() { return static_cast<int>(number()); }
  double real() { return result_.real(row_, column_++); }
  std::string text() { return result_.text(row_, column_++); }
  std::string_view view() { return result_.view(row_, column_++); }
  WallTime wall() { return result_.wall(row_, column_++); }
  std::optional<WallTime> maybe_wall() {
    if (skip_null()) return std::nullopt;
    return wall();
  }
  std::optional<std::string> maybe_text() {
    if (skip_null()) return std::nullopt;
    return text();
  }
  std::optional<std::string_view> maybe_view() {
    if (skip_null()) return std::nullopt;
    return view();
  }
  /// True, and one column on, where it is null.
  bool skip_null() {
    if (!next_is_null()) return false;
    ++column_;
    return true;
  }

 private:
  const Result& result_;
  const int row_;
  int column_ = 0;
};

}  // namespace holdfast::postgres
