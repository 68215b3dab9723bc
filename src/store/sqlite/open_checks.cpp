#include "store/sqlite/open_checks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/guard.hpp"
#include "holdfast/failure.hpp"
#include "store/sqlite/migrations.hpp"
#include "store/sqlite/statements.hpp"
#include "store/sqlite/write_lock.hpp"

namespace holdfast::sqlite {
namespace {

constexpr std::string_view kMagic{"SQLite format 3\0", 16};
using Header = std::array<unsigned char, 100>;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw StoreError(fmt::format("the store {} {}", path, what), true);
}

std::uint32_t number_at(const Header& header, std::size_t at) {
  return (std::uint32_t{header[at]} << 24) | (std::uint32_t{header[at + 1]} << 16) |
         (std::uint32_t{header[at + 2]} << 8) | std::uint32_t{header[at + 3]};
}

std::int64_t page_size(const Header& header) {
  const std::int64_t size = (std::int64_t{header[16]} << 8) | header[17];
  return size == 1 ? 65536 : size;
}

std::int64_t size_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? std::int64_t{info.st_size} : 0;
}

/// Nothing where the file does not begin as a database does.
std::optional<Header> read_header(int fd) {
  Header header{};
  const auto size = pread(fd, header.data(), header.size(), 0);
  if (size != static_cast<ssize_t>(header.size()) ||
      std::memcmp(header.data(), kMagic.data(), kMagic.size()) != 0) {
    return std::nullopt;
  }
  return header;
}

/// A database in SQLite's older journal mode says in its header whose it is.
void check_owner(const std::string& path, const Header& header) {
  const bool has_log = header[18] == 2;
  const bool is_ours = number_at(header, 68) == kApplicationId;
  const bool is_blank = number_at(header, 68) == 0 && number_at(header, 28) <= 1;
  if (!has_log && !is_ours && !is_blank) {
    refuse(path, "is a database of another program; name another file for the store");
  }
}

}  // namespace

std::string resolve_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (const fs::path whole = fs::canonical(absolute, error); !error) return whole.string();
  const fs::path folder = fs::canonical(absolute.parent_path(), error);
  if (error) {
    refuse(path, fmt::format("cannot be used: its folder {} cannot be reached ({}); make it first",
                             absolute.parent_path().string(), error.message()));
  }
  if (fs::is_symlink(absolute)) refuse(path, "is a link that leads nowhere; mend or remove it");
  return (folder / absolute.filename()).string();
}

bool check_before_opening(const std::string& path) {
  struct stat info {};
  // Asked first: a store has become a database before anybody is present in it.
  const bool was_used = stat((path + "-workers").c_str(), &info) == 0;
  const bool exists = stat(path.c_str(), &info) == 0;
  if (!exists) {
    if (errno != ENOENT) refuse(path, fmt::format("cannot be reached ({})", std::strerror(errno)));
    info = {};
    info.st_mode = S_IFREG;
  }
  if (S_ISDIR(info.st_mode)) refuse(path, "is a folder; name a file in it");
  if (!S_ISREG(info.st_mode)) refuse(path, "is not a regular file; name another");
  if (info.st_size == 0) {
    if (size_of(path + "-wal") > 0) {
      refuse(path,
             fmt::format("is missing or empty, but its log {}-wal is there: put the file back, "
                         "or remove the log if the runs in it are not wanted",
                         path));
    }
    if (exists && was_used) {
      refuse(path, fmt::format("is empty, though it was a store before, as {}-workers shows: put a "
                               "backup back, or remove both to begin anew",
                               path));
    }
    return false;
  }
  const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) {
    refuse(path,
           fmt::format("may not be read and written ({}); check its rights", std::strerror(errno)));
  }
  const auto header = read_header(file.get());
  if (!header) {
    refuse(path, "is not a SQLite database; name another file, or move this one away");
  }
  check_owner(path, *header);
  return true;
}

/// Without a log to complete it, the file must be whole.
void check_whole(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto header = file ? read_header(file.get()) : std::nullopt;
  if (!header) return;
  const std::int64_t page = page_size(*header);
  const bool is_page_size = page >= 512 && page <= 65536 && (page & (page - 1)) == 0;
  if (!is_page_size) refuse(path, "is damaged: its header is not sound; restore a backup");
  if (size_of(path + "-wal") > 0) return;
  const std::int64_t size = size_of(path);
  const bool is_count_valid = number_at(*header, 24) == number_at(*header, 92);
  const std::int64_t expected = is_count_valid ? page * number_at(*header, 28) : page;
  if (size % page != 0 || size < expected) {
    refuse(path, fmt::format("is damaged: it was cut off ({} of at least {} bytes); stop all its "
                             "users and restore a backup",
                             size, std::max(expected, (size / page + 1) * page)));
  }
}

std::optional<std::string> store_id_of_file(const std::string& path) {
  if (size_of(path + "-wal") == 0) return std::nullopt;
  std::string uri = "file:";
  for (const char c : path) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/';
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  uri += "?immutable=1";
  sqlite3* db = nullptr;
  sqlite3_stmt* statement = nullptr;
  std::optional<std::string> id;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(uri.c_str(), &db, flags, nullptr) == SQLITE_OK &&
      sqlite3_prepare_v2(db, kGetStoreId, -1, &statement, nullptr) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    if (text != nullptr) id = text;
  }
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return id;
}

void check_log_is_own(Connection& db, const std::optional<std::string>& id_of_file) {
  if (!id_of_file) return;
  auto cursor = db.query(kGetStoreId);
  const bool is_own = cursor.next() && cursor.view(0) == *id_of_file;
  if (HOLDFAST_GUARD("log_is_own", is_own)) return;
  refuse(db.path(),
         fmt::format("has the log of another store beside it: put its own {}-wal back, or remove "
                     "this one (what stood only in its own is lost then)",
                     db.path()));
}

void create_file(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file) return;
  refuse(path, fmt::format("cannot be created ({}); check the rights of its folder",
                           std::strerror(errno)));
}

void remove_unmade_file(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm", "-lock"}) {
    std::error_code ignored;
    std::filesystem::remove(path + suffix, ignored);
  }
}

std::string network_file_system(std::uint32_t type) {
  switch (type) {
    case 0x6969:
      return "NFS";
    case 0xFF534D42:
      return "CIFS";
    case 0xFE534D42:
      return "SMB2";
    case 0x517B:
      return "SMB";
    case 0x65735546:
      return "FUSE";
    case 0x01021997:
      return "9P";
    case 0x00C36400:
      return "Ceph";
    case 0x5346414F:
    case 0x6B414653:
      return "AFS";
    case 0x73757245:
      return "Coda";
    case 0x0BD00BD0:
      return "Lustre";
    case 0x47504653:
      return "GPFS";
    case 0x19830326:
      return "BeeGFS";
    default:
      return "";
  }
}

std::uint32_t file_system_of(const std::string& path) {
  struct statfs info {};
  return statfs(path.c_str(), &info) == 0 ? static_cast<std::uint32_t>(info.f_type) : 0;
}

std::optional<Finding> check_file_system(const std::string& path, std::uint32_t type) {
  const std::string network = network_file_system(type);
  if (network.empty()) return std::nullopt;
  return Finding{
      Finding::Grade::warning, "file system",
      fmt::format("{} lies on {}: locks and durability are not sure there; use a local disk", path,
                  network)};
}

}  // namespace holdfast::sqlite
