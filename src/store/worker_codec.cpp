#include "store/worker_codec.hpp"

namespace holdfast {

Json encode(const WorkerRow& row) {
  return {{"name", row.name},     {"host", row.host},
          {"pid", row.pid},       {"started_at", row.started_at.time_since_epoch().count()},
          {"agents", row.agents}, {"queues", row.queues},
          {"slots", row.slots},   {"busy", row.busy},
          {"stuck", row.stuck},   {"presence", row.presence}};
}

WorkerRow decode_worker(const Json& json) {
  WorkerRow row;
  row.name = json.value("name", "");
  row.host = json.value("host", "");
  row.pid = json.value("pid", 0);
  row.started_at = WallTime(Duration(json.value("started_at", std::int64_t{0})));
  row.agents = json.value("agents", std::vector<std::string>());
  row.queues = json.value("queues", std::vector<std::string>());
  row.slots = json.value("slots", 0);
  row.busy = json.value("busy", 0);
  row.stuck = json.value("stuck", 0);
  row.presence = json.value("presence", "");
  return row;
}

}  // namespace holdfast
