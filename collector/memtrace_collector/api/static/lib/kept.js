// What this browser keeps for the page; a browser that keeps nothing keeps it as long as the page.

export const forThisTab = () => kept("sessionStorage");
export const forAlways = () => kept("localStorage");

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
