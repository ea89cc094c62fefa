// The API of this server, and no other host.

const API = "/api/v1";

export async function ask(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return answerOf(await fetch(`${API}${path}${query ? `?${query}` : ""}`));
}

export const view = (name, parameters = {}) => ask(`/view/${name}`, parameters);

export async function tell(path, body) {
  const headers = { "content-type": "application/json" };
  return answerOf(await fetch(`${API}${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function answerOf(response) {
  const body = await response.json();
  if (!response.ok) throw new Error(body.message ?? response.statusText);
  return body;
}
