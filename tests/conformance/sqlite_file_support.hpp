#pragma once

// A store on a file, and what others do to that file.

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "conformance/store_test_support.hpp"

namespace holdfast::testing {

class SqliteFile : public ::testing::Test {
 protected:
  std::string path() const { return folder.file("runs.db"); }
  std::string url() const { return "sqlite:" + path(); }
  std::unique_ptr<Store> open() { return open_store(url(), env); }

  void write(const std::string& bytes) { std::ofstream(path(), std::ios::binary) << bytes; }
  static std::string bytes(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Statements by another program.
  void execute(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
    sqlite3_close(db);
  }
  /// What opening says; the file must stay as it was.
  std::string refusal() {
    const std::string before = bytes(path());
    std::string text;
    try {
      open();
    } catch (const StoreError& error) {
      text = error.what();
      EXPECT_TRUE(error.permanent()) << text;
    }
    EXPECT_EQ(bytes(path()), before);
    return text;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  holdfast::Run enqueue(Store& store) {
    const NewRun run = a_run(env);
    return store.enqueue(std::span(&run, 1)).front().run;
  }

  TempFolder folder;
  ManualEnv env;
};

}  // namespace holdfast::testing
