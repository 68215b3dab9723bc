// The shape of the source tree: who may include whom is read from the table in
// docs/architecture.md, so that the document and the code cannot drift apart.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = HOLDFAST_SOURCE_DIR;

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string shown(const fs::path& file) { return fs::relative(file, kRoot).generic_string(); }

/// Everything that the project keeps, built and hidden things aside.
std::vector<fs::path> files_below(const std::vector<std::string>& folders,
                                  const std::set<std::string>& endings) {
  std::vector<fs::path> found;
  for (const std::string& folder : folders) {
    if (!fs::exists(kRoot / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (!entry.is_regular_file()) continue;
      if (endings.empty() || endings.count(entry.path().extension().string()) != 0) {
        found.push_back(entry.path());
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string trimmed(std::string text) {
  const auto is_noise = [](char c) { return c == ' ' || c == '`'; };
  while (!text.empty() && is_noise(text.front())) text.erase(text.begin());
  while (!text.empty() && is_noise(text.back())) text.pop_back();
  return text;
}

/// Module → what it may include, from the table headed `| module | may include |`.
std::map<std::string, std::set<std::string>> include_table() {
  std::map<std::string, std::set<std::string>> table;
  bool inside = false;
  for (const std::string& line : lines_of(kRoot / "docs/architecture.md")) {
    if (line.rfind("| module | may include |", 0) == 0) {
      inside = true;
    } else if (inside && line.rfind("| ---", 0) != 0) {
      if (line.empty() || line.front() != '|') break;
      std::istringstream cells(line.substr(1));
      std::string module;
      std::string allowed;
      std::getline(cells, module, '|');
      std::getline(cells, allowed, '|');
      std::istringstream words(allowed);
      for (std::string word; std::getline(words, word, ',');) {
        table[trimmed(module)].insert(trimmed(word));
      }
    }
  }
  return table;
}

/// The row of the table that a file falls under: the longest module path that begins its own.
std::string module_of(const std::string& path,
                      const std::map<std::string, std::set<std::string>>& table) {
  std::string best;
  for (const auto& [module, allowed] : table) {
    const std::string prefix = module.rfind("include/", 0) == 0 ? module : "src/" + module;
    if (path.rfind(prefix + "/", 0) == 0 && module.size() > best.size()) best = module;
  }
  return best;
}

/// What an include stands for in the table: a library, a kind of standard header, or a module.
std::string meaning_of(const std::string& header) {
  static const std::map<std::string, std::string> kLibraries = {
      {"nlohmann/", "json"},   {"fmt/", "fmt"},
      {"toml++/", "toml"},     {"CLI/", "CLI11"},
      {"openssl/", "openssl"}, {"curl/", "curl"},
      {"sqlite3.h", "sqlite"}, {"libpq-fe.h", "postgres"},
      {"holdfast/", "public"}};
  static const std::set<std::string> kWorld = {
      "thread", "mutex",  "condition_variable", "fstream", "iostream", "filesystem", "shared_mutex",
      "future", "random", "semaphore",          "latch"};
  for (const auto& [prefix, library] : kLibraries) {
    if (header.rfind(prefix, 0) == 0) return library;
  }
  if (kWorld.count(header) != 0) return "std-world";
  if (header.find('/') == std::string::npos && header.find(".h") == std::string::npos) return "std";
  if (header.find(".hpp") == std::string::npos) return "posix";
  return header.substr(0, header.rfind('/'));
}

bool is_allowed(const std::string& header, const std::string& module,
                const std::set<std::string>& allowed) {
  const std::string meaning = meaning_of(header);
  if (allowed.count("everything") != 0 || meaning == "std" || allowed.count(header) != 0)
    return true;
  for (const std::string& word : allowed) {
    if (meaning == word || meaning.rfind(word + "/", 0) == 0) return true;
  }
  if (meaning == "public" && module == "include/holdfast") return true;
  return meaning == module || meaning.rfind(module + "/", 0) == 0;
}

TEST(Layout, EveryIncludeGoesTheWayTheTableAllows) {
  const auto table = include_table();
  ASSERT_GE(table.size(), 10u) << "the table in docs/architecture.md was not found";
  static const std::regex kInclude(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  int seen = 0;
  for (const fs::path& file : files_below({"src", "include"}, {".hpp", ".cpp"})) {
    const std::string path = shown(file);
    if (path.find("test") != std::string::npos) continue;  // tests and what they share
    const std::string module = module_of(path, table);
    ASSERT_FALSE(module.empty()) << path << " belongs to no module of the table";
    for (const std::string& line : lines_of(file)) {
      std::smatch match;
      if (!std::regex_search(line, match, kInclude)) continue;
      ++seen;
      EXPECT_TRUE(is_allowed(match[1], module, table.at(module)))
          << path << " (module " << module << ") must not include " << match[1];
    }
  }
  EXPECT_GT(seen, 100);
}

TEST(Layout, TheTableRefusesTheWrongWay) {
  const auto table = include_table();
  EXPECT_FALSE(is_allowed("store/store.hpp", "core", table.at("core")));
  EXPECT_FALSE(is_allowed("thread", "core", table.at("core")));
  EXPECT_FALSE(is_allowed("curl/curl.h", "agent", table.at("agent")));
  EXPECT_FALSE(is_allowed("store/sqlite/writer.hpp", "engine", table.at("engine")));
  EXPECT_FALSE(is_allowed("engine/worker.hpp", "cli", table.at("cli")));
  EXPECT_TRUE(is_allowed("store/store.hpp", "engine", table.at("engine")));
}

TEST(Layout, NoFileGrowsBeyondFiveHundredLines) {
  for (const fs::path& file :
       files_below({"src", "include", "tests", "examples", "bench"}, {".hpp", ".cpp"})) {
    EXPECT_LE(lines_of(file).size(), 500u) << shown(file) << " is to be split";
  }
}

TEST(Layout, HeadersAreGuardedAndOwnHeadersComeFirst) {
  static const std::regex kInclude(R"re(^\s*#\s*include\s*"([^"]+)")re");
  for (const fs::path& file : files_below({"src", "include"}, {".hpp"})) {
    const auto lines = lines_of(file);
    EXPECT_TRUE(std::find(lines.begin(), lines.end(), "#pragma once") != lines.end())
        << shown(file);
  }
  for (const fs::path& file : files_below({"src"}, {".cpp"})) {
    fs::path header = file;
    header.replace_extension(".hpp");
    if (!fs::exists(header)) continue;
    for (const std::string& line : lines_of(file)) {
      std::smatch match;
      if (line.rfind("#include", 0) != 0) continue;
      ASSERT_TRUE(std::regex_search(line, match, kInclude)) << shown(file);
      EXPECT_EQ(fs::path(match[1].str()).filename(), header.filename()) << shown(file);
      break;
    }
  }
}

TEST(Layout, NoFileNamesAPlaceOfOneMachine) {
  // Written in two parts, so that this file does not name them itself.
  const std::vector<std::string> forbidden = {
      std::string("/wo") + "rk/", std::string("/tmp") + "/hf", std::string("/ho") + "me/",
      std::string("/ro") + "ot/"};
  std::vector<fs::path> files =
      files_below({"src", "include", "tests", "examples", "bench", "docs", "scripts", "cmake"}, {});
  for (const char* name :
       {"README.md", "CHANGELOG.md", "CMakeLists.txt", "build", "test", "demo"}) {
    if (fs::is_regular_file(kRoot / name)) files.push_back(kRoot / name);
  }
  ASSERT_GT(files.size(), 50u);
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (const std::string& word : forbidden) {
      EXPECT_EQ(text.find(word), std::string::npos) << shown(file) << " names " << word;
    }
  }
}

TEST(Layout, LocalLinksOfTheDocumentsLeadSomewhere) {
  static const std::regex kLink(R"(\]\(([^)#:]+)(#[^)]*)?\))");
  std::vector<fs::path> pages = files_below({"docs"}, {".md"});
  pages.push_back(kRoot / "README.md");
  for (const fs::path& page : pages) {
    std::ifstream in(page);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (std::sregex_iterator it(text.begin(), text.end(), kLink), end; it != end; ++it) {
      EXPECT_TRUE(fs::exists(page.parent_path() / (*it)[1].str()))
          << shown(page) << " links to " << (*it)[1];
    }
  }
}

}  // namespace
