#pragma once

// The recorded failures of tests/data/provider-errors.jsonl, for tests.

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/classify.hpp"
#include "holdfast/json.hpp"
#include "support/stub_server.hpp"

namespace holdfast {

/// `source`: the folder of the repository.
inline std::vector<Json> recorded_rows(const std::string& source) {
  std::ifstream file(source + "/tests/data/provider-errors.jsonl");
  std::vector<Json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
  return rows;
}

inline Json recorded_row(const std::string& source, const std::string& id) {
  for (Json& row : recorded_rows(source)) {
    if (row["id"] == id) return row;
  }
  ADD_FAILURE() << "no row " << id;
  return {};
}

/// What the row's server sent, byte for byte.
inline testing::StubAnswer answer_of(const Json& row) {
  testing::StubAnswer answer;
  answer.status = row["status"];
  for (const auto& [name, value] : row["headers"].items()) answer.headers.emplace_back(name, value);
  answer.pieces = {row["body"].get<std::string>()};
  return answer;
}

inline void expect_row(const Json& row, const Failure& failure, const std::string& through = {}) {
  const std::string about =
      row["id"].get<std::string>() + " through " + through + ": " + failure.message;
  EXPECT_EQ(to_word(failure.cls), row["expected_class"].get<std::string>()) << about;
  EXPECT_EQ(failure.should_retry.value_or(is_retryable(failure.cls)),
            row["expected_retryable"].get<bool>())
      << about;
  const Json hint = failure.retry_after ? Json(failure.retry_after->count()) : Json();
  EXPECT_EQ(hint, row["delay_hint_ms"]) << about;
  EXPECT_EQ(failure.message.find("xx01"), std::string::npos) << about;
}

}  // namespace holdfast
