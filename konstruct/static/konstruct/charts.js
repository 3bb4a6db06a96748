/* A click on a bar or a point of a chart opens the list of its rows. */

"use strict";

/* The numbers of an axis are written as in the language of the page. */
Chart.register({
  id: "numbers",
  beforeInit(chart) {
    const ticks = chart.config.options?.scales?.y?.ticks;
    const { suffixYAxis } = chart.data.datasets.find((dataset) => dataset.suffixYAxis) ?? {};
    const numbers = new Intl.NumberFormat(document.documentElement.lang);
    if (ticks) {
      ticks.callback = (value) => [numbers.format(value), suffixYAxis].filter(Boolean).join(" ");
    }
  },
});

document.addEventListener("click", (event) => {
  const box = event.target.closest("[data-chart]");
  const chart = box && event.target.matches("canvas") ? Chart.getChart(event.target) : null;
  const mode = { intersect: false, axis: "x" };
  const hit = chart?.getElementsAtEventForMode(event, "nearest", mode, true);
  if (!hit?.length) {
    return;
  }
  const within = chart.getElementsAtEventForMode(event, "nearest", { intersect: true }, true);
  const { datasetIndex, index } = within[0] || hit[0];
  const addresses = JSON.parse(box.dataset.addresses);
  const days = JSON.parse(box.dataset.days);
  const address = addresses[datasetIndex] || addresses[0];
  if (address) {
    location.assign(address.replace("DAY", days[index]).replace("NEXT", days[index + 1]));
  }
});

/* Dates that are typed are those of the range "From, to". */
document.addEventListener("change", (event) => {
  const range = event.target.closest(".k-range");
  if (range && event.target.matches("input[type=date]")) {
    range.querySelector("[name=days]").value = "custom";
  }
});
