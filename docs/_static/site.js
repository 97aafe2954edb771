// What the theme and the writers of tables leave without a name for screen readers.
"use strict";

const label = (selector, name) => {
  document.querySelectorAll(selector).forEach((element, n) => {
    if (element.closest("[aria-label]") === element) return;
    element.setAttribute("aria-label", n ? `${name} ${n + 1}` : name);
  });
};

// the same links stand in the header and in the sidebar of a phone
label("#pst-header nav", "Chapters");
label("#pst-primary-sidebar .sidebar-header-items nav", "Chapters, in the sidebar");

// its name is what it shows: "Search Ctrl + K"
document.querySelectorAll(".search-button-field").forEach((button) => {
  button.ariaLabel = button.textContent.replace(/\s+/g, " ").trim();
});

// what opens is named by what it shows: "Show the code"
document.querySelectorAll("article .cell summary").forEach((summary) => {
  summary.removeAttribute("aria-label");
});

// a part of the sidebar that opens is named after its page
document.querySelectorAll(".bd-sidebar-primary summary").forEach((summary) => {
  summary.ariaLabel = `Pages of ${summary.closest("li").querySelector("a").textContent}`;
});

// an empty corner of a table of data is no header
for (const head of document.querySelectorAll("article th")) {
  if (head.textContent.trim()) continue;
  const cell = document.createElement("td");
  for (const { name, value } of head.attributes) cell.setAttribute(name, value);
  head.replaceWith(cell);
}

// what is scrolled with a mouse is reached by the keyboard as well
const scrolled = "article pre, article .cell_output, article [style*=overflow], article .pst-scrollable-table-container, div.math, article p:has(> math)";
const reach = () => {
  for (const element of document.querySelectorAll(scrolled)) {
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
  }
};
reach();
addEventListener("resize", reach);
