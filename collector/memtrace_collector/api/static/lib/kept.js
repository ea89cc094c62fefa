// What this browser keeps for the page; a browser that keeps nothing keeps it as long as the page.

export const forThisTab = () => kept("sessionStorage");
export const forAlways = () => kept("localStorage");

const LIST = "memtrace.list";

// The list of failures as it was last shown in this tab, with its filters.
export const lastList = () => forThisTab().getItem(LIST) ?? "#/failures";
export const rememberList = (address) => forThisTab().setItem(LIST, address);
export const forgetList = () => forThisTab().removeItem(LIST);

const instead = new Map();

function kept(name) {
  try {
    window[name].getItem("");
    return window[name];
  } catch {
    return {
      getItem: (key) => instead.get(key) ?? null,
      setItem: (key, value) => instead.set(key, value),
      removeItem: (key) => instead.delete(key),
    };
  }
}
