"use strict";
(() => {
  const all = (selector, node = document) => [...node.querySelectorAll(selector)];
  const kept = `smalto ${location.pathname}`;
  const table = document.querySelector(".atoms");
  const search = document.querySelector("#search");
  let sorted = null;

  function sort(number, falling) {
    const head = all("th", table);
    head.forEach((cell, i) => {
      if (i === number) cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    const value = row => {
      const cell = row.cells[number];
      return "v" in cell.dataset ? parseFloat(cell.dataset.v) : cell.textContent.toLowerCase();
    };
    const rows = [...table.tBodies[0].rows].map(row => [value(row), row]);
    const order = (a, b) => a < b ? -1 : a > b ? 1 : 0;
    rows.sort((a, b) => falling ? order(b[0], a[0]) : order(a[0], b[0]));
    table.tBodies[0].append(...rows.map(pair => pair[1]));
    sorted = [number, falling];
  }

  function find() {
    const wanted = search.value.toLowerCase().split(",").map(text => text.trim()).filter(Boolean);
    let count = 0;
    for (const row of table.tBodies[0].rows) {
      const number = row.cells[0].textContent;
      const names = all(".chips span", row).map(chip => chip.firstChild.textContent);
      const text = [...names, row.cells[row.cells.length - 1].textContent].join("\n").toLowerCase();
      row.hidden = !wanted.every(one => one === number || text.includes(one));
      count += !row.hidden;
    }
    const total = table.tBodies[0].rows.length;
    document.querySelector("#found").textContent = `${count.toLocaleString("en")} of ${total.toLocaleString("en")} atoms`;
  }

  if (table) {
    all("th button", table).forEach((button, i) => button.addEventListener("click", () => {
      const was = button.parentNode.getAttribute("aria-sort");
      sort(i, was ? was === "ascending" : "falling" in button.dataset);
    }));
    search.addEventListener("input", find);
  }

  // The point of a chart that is nearest to the pointer.
  for (const svg of all(".chart svg")) {
    const points = JSON.parse(svg.dataset.points), dot = document.createElementNS(svg.namespaceURI, "circle");
    dot.setAttribute("r", 4);
    dot.setAttribute("class", "cursor");
    const output = svg.parentNode.querySelector("output");
    svg.addEventListener("pointermove", event => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const far = p => Math.hypot(p[0] - at.x, 0.35 * (p[1] - at.y));
      const nearest = points.reduce((a, b) => far(b) < far(a) ? b : a);
      dot.setAttribute("cx", nearest[0]);
      dot.setAttribute("cy", nearest[1]);
      svg.append(dot);
      output.textContent = nearest[2];
    });
    svg.addEventListener("pointerleave", () => { dot.remove(); output.textContent = ""; });
  }

  // A page of a run that goes on comes back as it was left, and says if there is no news.
  const { written, every } = document.body.dataset;
  try {
    const left = JSON.parse(sessionStorage.getItem(kept) || "null");
    sessionStorage.removeItem(kept);
    if (left) {
      if (table && left.query) { search.value = left.query; find(); }
      if (table && left.sorted) sort(...left.sorted);
      scrollTo({ top: left.y, behavior: "instant" });
    }
    if (every) addEventListener("pagehide", () => sessionStorage.setItem(
      kept, JSON.stringify({ query: search?.value, sorted, y: scrollY })));
  } catch { /* a browser without storage */ }
  const silent = Date.now() / 1000 - written;
  if (every && silent > 60 + 5 * every) {
    document.querySelector(".why").textContent =
      `There has been no news for ${Math.round(silent / 60)} minutes: the run may have been killed.`;
  }
})();
