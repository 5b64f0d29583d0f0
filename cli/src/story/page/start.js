// Theme, contents, start.
const THEMES = ["auto", "light", "dark"];

function setUpTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let theme = "auto";
  const apply = () => {
    document.documentElement.toggleAttribute("data-dark", theme === "dark" || (theme === "auto" && system.matches));
    byId("theme").textContent = `Theme: ${theme}`;
  };
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}

function setUpWidth() {
  const measure = () => {
    const width = charts.length ? charts[0].plot.clientWidth : 0;
    if (width === 0 || width === view.width) return;
    view.width = width;
    view.gutter = width < 600 ? 84 : 132;
    redraw();
  };
  measure();
  new ResizeObserver(measure).observe(byId("main"));
  addEventListener("beforeprint", () => charts.forEach((chart) => { chart.near = true; drawChart(chart); }));
}

function start() {
  setUpTheme();
  setUpDialog();
  try {
    const raw = JSON.parse(byId("story").textContent);
    story = readStory(raw !== null && typeof raw === "object" ? raw : {});
  } catch (error) {
    byId("main").append(el("p", {}, `The data of this report cannot be read: ${clean(error.message)}`));
    return;
  }
  setView(story.times[0] || 0, story.end); // A report without the run's start opens at its first block.
  headerSection();
  for (const build of [timeSection, blocksSection, presenceSection, timersSection, jobsSection, speculationsSection, faultsSection, checksSection, logsSection]) build();
  byId("contents").append(el("ul", {}, ...sections.map(([id, title]) => el("li", {}, el("a", { href: `#${id}` }, title)))));
  setUpWidth();
  redraw();
}

start();
