#pragma once

// The address of an HTTP tool, with places for arguments. What an argument holds stays inside its
// place: it can change neither scheme nor host, and leads to no other folder of the path. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/json.hpp"

namespace holdfast {

/// Scheme, host and port as they stand in an address, in lower case: `https://api.example:8443`.
/// Empty where it is none that requests can be sent to.
std::string origin_of(const std::string& url);

/// Is the address's host on the list? Entries are hosts with or without a port, or `*.example.org`
/// for all hosts below one. An empty list names all.
bool is_host_listed(const std::string& url, const std::vector<std::string>& hosts);

/// What is wrong with an entry of that list; empty: nothing.
std::string host_entry_problem(const std::string& entry);

/// What is wrong with a template, whose arguments meet the schema `parameters`; empty: nothing.
std::string url_template_problem(const std::string& text, const Json& parameters);

struct FilledUrl {
  std::string url;
  std::vector<std::string> used;  ///< arguments that stand in it
  std::string problem;            ///< for the model; then there is no address
};

/// The template with the arguments in their places, percent-encoded.
FilledUrl fill_url(const std::string& text, const Json& arguments);

/// Every byte but letters, digits and `-._~` as `%XX`.
std::string percent_encoded(std::string_view text);

/// A scalar as it stands in an address; nothing for null, objects and lists.
std::optional<std::string> plain_text(const Json&);

}  // namespace holdfast
