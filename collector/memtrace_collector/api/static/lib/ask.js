// The API of this server, and no other host.

import { admission, askForToken } from "./door.js";

const API = "/api/v1";

// What the server (or nobody) answered: `status` is 0 when it could not be reached.
export class AskError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export async function ask(path, parameters = {}) {
  const given = Object.entries(parameters)
    .filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return answerOf(`${API}${path}${query ? `?${query}` : ""}`, {});
}

export const view = (name, parameters = {}) => ask(`/view/${name}`, parameters);

export async function tell(path, body) {
  const headers = { "content-type": "application/json" };
  return answerOf(`${API}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

async function answerOf(address, request) {
  let response = await send(address, request);
  while (response.status === 401) {
    await askForToken();
    response = await send(address, request);
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new AskError(body.message ?? response.statusText, response.status);
  return body;
}

async function send(address, request) {
  const headers = { ...request.headers, ...admission() };
  try {
    return await fetch(address, { ...request, headers });
  } catch {
    throw new AskError("The server does not answer.", 0);
  }
}
