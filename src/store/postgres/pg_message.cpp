#include "store/postgres/pg_message.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace holdfast::postgres {
namespace {

/// A notification carries less than 8,000 bytes.
constexpr std::size_t kMostPayload = 7000;
constexpr std::size_t kMostHere = 4000;

Json here_json(const std::vector<Service>& services) {
  Json made = Json::array();
  for (const Service& service : services) {
    made.push_back({{"agents", service.has_all_agents ? Json() : Json(service.agents)},
                    {"queues", service.queues}});
  }
  if (dump_json(made).size() <= kMostHere) return made;
  // As if it served everything: it then looks in vain now and then.
  return {{{"agents", nullptr}, {"queues", Json::array()}}};
}

std::vector<Service> services_of(const Json& json) {
  std::vector<Service> services;
  for (const Json& one : json) {
    Service service;
    service.has_all_agents = one.at("agents").is_null();
    if (!service.has_all_agents) service.agents = one.at("agents").get<std::set<std::string>>();
    service.queues = one.at("queues").get<std::set<std::string>>();
    services.push_back(std::move(service));
  }
  return services;
}

Json to_json(const Message& message) {
  Json made = {{"number", message.number}};
  for (const auto& told : message.queued) {
    made["queued"].push_back({told.kind.agent, told.kind.queue, told.runs});
  }
  if (message.here) made["here"] = here_json(*message.here);
  if (!message.missed.empty()) made["missed"] = message.missed;
  if (message.asks) made["asks"] = true;
  if (message.leaves) made["leaves"] = true;
  return made;
}

/// False, and nothing is changed: it is not what `to_json` makes.
bool read_json(Message& message, const Json& json) {
  try {
    Message read;
    read.from = message.from;
    read.number = json.at("number").get<std::int64_t>();
    for (const Json& told : json.value("queued", Json::array())) {
      read.queued.push_back(
          {{told.at(0).get<std::string>(), told.at(1).get<std::string>()}, told.at(2).get<int>()});
    }
    if (json.contains("here")) read.here = services_of(json.at("here"));
    read.missed = json.value("missed", std::vector<std::string>());
    read.asks = json.value("asks", false);
    read.leaves = json.value("leaves", false);
    message = std::move(read);
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

bool is_plain_word(const std::string& text) {
  return !text.empty() && text.find_first_of(std::string(" \\{\0", 4)) == std::string::npos;
}

std::string payload_of(const Message& message) {
  std::string payload = message.from;
  std::set<std::string> agents;
  for (const auto& told : message.queued) {
    agents.insert(is_plain_word(told.kind.agent) ? told.kind.agent : "*");
  }
  for (const std::string& agent : agents) payload += " " + agent;
  return payload + " " + dump_json(to_json(message));
}

}  // namespace

bool Service::may_serve(const Kind& kind) const {
  const bool has_agent =
      has_all_agents || (kind.agent.empty() ? !agents.empty() : agents.contains(kind.agent));
  return has_agent && (queues.empty() || kind.queue.empty() || queues.contains(kind.queue));
}

std::string encode(const Message& message) {
  std::string payload = payload_of(message);
  if (payload.size() <= kMostPayload) return payload;
  Message vague = message;
  if (!message.queued.empty()) vague.queued.assign(1, {});
  vague.missed.clear();
  return payload_of(vague);
}

Message decode_message(std::string_view payload, int session) {
  Message message;
  std::size_t at = std::min(payload.find(' '), payload.size());
  message.from = payload.substr(0, at);
  if (const auto json_at = payload.find(" {"); json_at != std::string_view::npos) {
    const auto json = parse_json(payload.substr(json_at + 1));
    if (json && read_json(message, *json)) return message;
  }
  message.number = session;
  while (at < payload.size()) {
    const std::size_t end = std::min(payload.find(' ', at + 1), payload.size());
    const std::string agent(payload.substr(at + 1, end - at - 1));
    message.queued.push_back({{agent == "*" ? "" : agent, ""}, 0});
    at = end;
  }
  return message;
}

}  // namespace holdfast::postgres
