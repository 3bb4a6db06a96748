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
