// An LLM agent whose tools are functions of this program. The model is scripted, so that no key is
// needed: change the provider to `openai` with a base_url and it is a real one.
//
// The agent looks a customer up and opens a ticket. Opening a ticket is a write that must not
// happen twice and that a person approves: the run waits, durably, until the decision.

#include <filesystem>
#include <fstream>
#include <holdfast/runtime.hpp>
#include <iostream>

using holdfast::Json;

namespace {

/// What a model would answer, turn by turn.
const char* const kScript = R"([
  {"tool_calls": [{"name": "lookup", "arguments": {"id": "c-7"}}]},
  {"tool_calls": [{"name": "open_ticket", "arguments": {"customer": "Ada", "text": "printer on fire"}}]},
  {"reply": "Ticket T-1 is open for Ada."}
])";

Json object_schema(const std::vector<std::string>& required) {
  auto properties = Json::object();
  for (const auto& name : required) properties[name] = {{"type", "string"}};
  return {{"type", "object"}, {"properties", properties}, {"required", required}};
}

holdfast::ToolSpec lookup_tool() {
  holdfast::ToolSpec tool;
  tool.name = "lookup";
  tool.description = "Look a customer up by id";
  tool.effect = holdfast::Effect::read;
  tool.parameters = object_schema({"id"});
  tool.function = [](const Json& arguments, const holdfast::StepContext&) -> Json {
    return {{"id", arguments.at("id")}, {"name", "Ada"}};
  };
  return tool;
}

holdfast::ToolSpec ticket_tool(int& opened) {
  holdfast::ToolSpec tool;
  tool.name = "open_ticket";
  tool.description = "Open a ticket for a customer";
  tool.effect = holdfast::Effect::non_idempotent_write;
  tool.parameters = object_schema({"customer", "text"});
  tool.approval = true;
  tool.function = [&opened](const Json&, const holdfast::StepContext&) -> Json {
    return {{"ticket", "T-" + std::to_string(++opened)}};
  };
  return tool;
}

void print_event(const holdfast::Event& event) { std::cout << "- " << event.kind.text() << '\n'; }

}  // namespace

int main() {
  const auto folder = std::filesystem::temp_directory_path() / "holdfast-cpp-tools";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "turns.json") << kScript;

  int opened = 0;
  holdfast::RuntimeOptions options;
  options.store_url = "sqlite:" + (folder / "runs.db").string();
  holdfast::ProviderSpec provider;
  provider.name = "main";
  provider.kind = "scripted";
  provider.script = (folder / "turns.json").string();
  options.providers = {provider};
  options.tools = {lookup_tool(), ticket_tool(opened)};
  holdfast::AgentSpec agent;
  agent.name = "support";
  agent.models = {"main/scripted"};
  agent.system = "You help customers.";
  agent.tools = {"lookup", "open_ticket"};
  options.agents = {agent};
  auto runtime = holdfast::Runtime::open(options);

  holdfast::RunRequest request;
  request.agent = "support";
  request.input = "My printer is on fire. I am customer c-7.";
  const auto first = runtime->run(request, print_event, {});
  std::cout << "outcome: " << holdfast::to_word(first.outcome) << '\n';
  if (!first.run.waiting_for) return 1;
  for (const auto& call : first.run.waiting_for->calls) {
    std::cout << "a person sees: " << call.name << ' ' << call.arguments.dump() << '\n';
  }
  std::cout << "tickets before the approval: " << opened << '\n';

  // The decision names the turn that the person saw: what was approved is what runs.
  holdfast::Decision decision;
  decision.run = first.run.id;
  decision.kind = holdfast::DecisionKind::approve;
  decision.turn = first.run.waiting_for->turn;
  decision.by.actor = "grace";
  const auto decided = runtime->decide(decision, print_event, {});

  std::cout << "status: " << decided.run.status.text() << '\n';
  std::cout << "answer: " << decided.run.answer.value_or(nullptr).dump() << '\n';
  std::cout << "tickets opened: " << opened << '\n';

  runtime.reset();
  std::filesystem::remove_all(folder);
  return decided.run.status.is(holdfast::Status::completed) ? 0 : 1;
}
