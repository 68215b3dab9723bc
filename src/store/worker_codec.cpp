#include "store/worker_codec.hpp"

#include "core/lenient.hpp"

namespace holdfast {

Json encode(const WorkerRow& row) {
  return {{"name", row.name},     {"host", row.host},
          {"pid", row.pid},       {"started_at", row.started_at.time_since_epoch().count()},
          {"agents", row.agents}, {"queues", row.queues},
          {"slots", row.slots},   {"busy", row.busy},
          {"stuck", row.stuck},   {"presence", row.presence}};
}

WorkerRow decode_worker(const Json& json) {
  using lenient::read;
  WorkerRow row;
  read(json, "name", row.name);
  read(json, "host", row.host);
  read(json, "pid", row.pid);
  read(json, "started_at", row.started_at);
  read(json, "agents", row.agents);
  read(json, "queues", row.queues);
  read(json, "slots", row.slots);
  read(json, "busy", row.busy);
  read(json, "stuck", row.stuck);
  read(json, "presence", row.presence);
  return row;
}

}  // namespace holdfast
