/** Says who is logged in, and logs in and out. */

const who = document.querySelector("#who");
const logIn = document.querySelector("#log-in");
const logOut = document.querySelector("#log-out");

async function post(path, body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  return await response.json();
}

logIn.addEventListener("click", async () => {
  const { url, error } = await post("/api/v1/login", { return_to: location.pathname });
  if (url === undefined) who.textContent = error.sentence;
  else location.href = url;
});

logOut.addEventListener("click", async () => {
  await post("/api/v1/logout", {});
  location.reload();
});

const { account } = await (await fetch("/api/v1/me")).json();
who.textContent = account === undefined ? "Nobody is logged in." : `Account ${account.name}`;
logIn.hidden = account !== undefined;
logOut.hidden = account === undefined;
