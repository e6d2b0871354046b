// Shows openapi.json: for each path what it takes and what it gives.

const resolve = (api, schema) => (schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema);

function kind(api, schema) {
  if (schema.anyOf) return schema.anyOf.map((each) => kind(api, each)).join(" or ");
  if (schema.prefixItems) return `[${schema.prefixItems.map((each) => kind(api, each)).join(", ")}]`;
  if (schema.type === "array") return `list of ${kind(api, schema.items)}`;
  return schema.$ref ? resolve(api, schema).title : (schema.type ?? "any");
}

function fields(api, schema) {
  const rows = [];
  const add = (each, indent) => {
    for (const [name, field] of Object.entries(resolve(api, each).properties ?? {})) {
      const needed = resolve(api, each).required?.includes(name) ? "" : `, default ${JSON.stringify(field.default ?? null)}`;
      const cells = [element("code", {}, indent + name), kind(api, field) + needed, field.description ?? ""];
      rows.push(element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
      const inner = [field, field.items, ...(field.anyOf ?? [])].find((one) => one?.$ref);
      if (inner) add(inner, `${indent}${name}.`);
    }
  };
  add(schema, "");
  return element("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Fields" }, element("table", {}, ...rows));
}

function operation(api, method, path, described) {
  const title = element("h2", {}, `${method.toUpperCase()} ${path}`);
  const section = element("section", {}, title, element("p", {}, described.summary ?? ""));
  const body = described.requestBody?.content["application/json"].schema;
  const address = new URL(`.${path}`, location.href).href;
  const content = body ? ` -H 'Content-Type: application/json' -d '{"text": "…"}'` : "";
  section.append(element("pre", { tabindex: "0" }, `curl ${address}${content}`));
  if (body) section.append(element("h3", {}, "Takes"), fields(api, body));
  for (const [code, response] of Object.entries(described.responses)) {
    section.append(element("h3", {}, `${code}: ${response.description}`));
    const schema = response.content?.["application/json"]?.schema;
    if (schema && code === "200") section.append(fields(api, schema));
  }
  if (Object.keys(described.responses).some((code) => Number(code) >= 400 && path === "/translate")) {
    section.append(element("p", {}, "All errors are an object with one field, error: why, in a sentence."));
  }
  return section;
}

async function show() {
  try {
    const api = await (await fetch("openapi.json")).json();
    const main = at("paths");
    for (const [path, operations] of Object.entries(api.paths)) {
      for (const [method, described] of Object.entries(operations)) main.append(operation(api, method, path, described));
    }
  } catch {
    at("status").textContent = "The server does not answer.";
  }
}

show();
