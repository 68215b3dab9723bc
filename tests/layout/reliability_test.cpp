// docs/reliability.md names tests, checks of the simulator and guards: each must be there.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kSources = HOLDFAST_SOURCE_DIR;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// All of the code below these folders in files whose names end in one of these, as one text.
std::string code_below(const std::vector<std::string>& folders,
                       const std::vector<std::string>& endings = {".cpp", ".hpp"}) {
  std::string code;
  for (const std::string& folder : folders) {
    if (!fs::exists(kSources / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kSources / folder)) {
      const std::string name = entry.path().filename().string();
      const bool is_wanted = std::ranges::any_of(
          endings, [&](const std::string& ending) { return name.ends_with(ending); });
      if (is_wanted) code += text_of(entry.path());
    }
  }
  return code;
}

/// What `pattern` finds; `join`: the second group behind the first.
std::set<std::string> found_in(const std::string& text, const char* pattern, bool join = false) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.insert(join ? (*it)[1].str() + "." + (*it)[2].str() : (*it)[1].str());
  }
  return found;
}

struct Promise {
  std::string words;
  std::set<std::string> invariants;
  std::set<std::string> tests;
  std::set<std::string> checks;
  std::set<std::string> guards;
};

std::vector<Promise> promises() {
  std::vector<Promise> rows;
  std::istringstream page(text_of(kSources / "docs/reliability.md"));
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| promise |", 0) == 0) {
      inside = true;
    } else if (inside && line.rfind("| ---", 0) != 0) {
      if (line.empty() || line.front() != '|') break;
      std::vector<std::string> cells;
      std::istringstream row(line.substr(1));
      for (std::string cell; std::getline(row, cell, '|');) cells.push_back(cell);
      cells.resize(5);
      rows.push_back({cells[0], found_in(cells[1], "(\\d+)"), found_in(cells[2], "`([^`]+)`"),
                      found_in(cells[3], "\"([^\"]+)\""), found_in(cells[4], "`([^`]+)`")});
    }
  }
  return rows;
}

TEST(Reliability, EveryTestItNamesIsThere) {
  const std::string code = code_below({"src", "tests"}, {"_test.cpp"});
  const auto tests = found_in(code, R"(\bTEST(?:_F|_P)?\((\w+),\s*(\w+)\))", true);
  ASSERT_GT(tests.size(), 200u);
  const std::string page = text_of(kSources / "docs/reliability.md");
  for (const std::string& test : found_in(page, R"(`([A-Z]\w+\.[A-Z]\w+)`)")) {
    EXPECT_EQ(tests.count(test), 1u) << test;
  }
  for (const Promise& promise : promises()) {
    EXPECT_FALSE(promise.tests.empty()) << promise.words;
    for (const std::string& test : promise.tests) EXPECT_EQ(tests.count(test), 1u) << test;
  }
}

TEST(Reliability, EveryGuardItNamesIsThere) {
  const auto guards = found_in(code_below({"src"}), "HOLDFAST_GUARD\\(\\s*\"(\\w+)\"");
  ASSERT_GE(guards.size(), 25u);
  std::set<std::string> named;
  for (const Promise& promise : promises()) {
    for (const std::string& guard : promise.guards) {
      EXPECT_EQ(guards.count(guard), 1u) << guard;
      named.insert(guard);
    }
  }
  EXPECT_GE(named.size(), 25u);
}

TEST(Reliability, EveryCheckOfTheSimulatorIsThere) {
  if (!fs::exists(kSources / "tests/sim")) GTEST_SKIP() << "the simulator is not here";
  const std::string code = code_below({"tests/sim", "src/core"});
  std::set<std::string> named;
  for (const Promise& promise : promises()) {
    named.insert(promise.checks.begin(), promise.checks.end());
  }
  EXPECT_GE(named.size(), 10u);
  for (const std::string& check : named) {
    EXPECT_NE(code.find('"' + check + '"'), std::string::npos) << check;
  }
}

TEST(Reliability, EveryInvariantCarriesAPromise) {
  std::set<std::string> named;
  for (const Promise& promise : promises()) {
    named.insert(promise.invariants.begin(), promise.invariants.end());
  }
  for (int number = 1; number <= 10; ++number) {
    EXPECT_EQ(named.count(std::to_string(number)), 1u) << "invariant " << number;
  }
}

TEST(Reliability, NobodyPromisesWhatNobodyCanKeep) {
  // Written in two parts, so that this file does not say it.
  const std::regex promised(std::string("exactly[ -]") + "once", std::regex::icase);
  std::vector<fs::path> pages = {kSources / "README.md", kSources / "CHANGELOG.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kSources / "docs")) {
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  }
  for (const fs::path& page : pages) {
    EXPECT_FALSE(std::regex_search(text_of(page), promised)) << page;
  }
}

}  // namespace
