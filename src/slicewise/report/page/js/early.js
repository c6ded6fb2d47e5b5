// Runs before the page is drawn, so that a theme that was chosen does not flash in the other one.
try {
  const theme = localStorage.getItem("slicewise-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // storage may be closed to the page: the system's theme holds
}
