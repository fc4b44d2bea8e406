// SPDX-License-Identifier: BSD-2-Clause

// Builds the program of the report's charts into the folder that `shai report` embeds, with the licences of what it is
// made of. With --check it writes nothing, and fails if a file differs.
//
// Usage: node dashboards/web/build.mjs [--check]
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const PAGE = here("../../monitor/internal/report/page/");
const LICENCES = [
  ["Apache ECharts", ["node_modules/echarts/NOTICE", "node_modules/echarts/LICENSE", "node_modules/echarts/licenses/LICENSE-d3"]],
  ["zrender", ["node_modules/zrender/LICENSE"]],
  ["tslib", ["node_modules/tslib/LICENSE.txt"]],
];

async function program() {
  const { outputFiles } = await build({
    entryPoints: [here("report/main.js")],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    charset: "ascii",
    legalComments: "none",
    define: { "process.env.NODE_ENV": '"production"' },
    banner: { js: "/* SPDX-License-Identifier: BSD-2-Clause AND Apache-2.0 AND BSD-3-Clause AND 0BSD */" },
  });
  return outputFiles[0].text;
}

async function licences() {
  const parts = await Promise.all(
    LICENCES.map(async ([name, files]) => {
      const texts = await Promise.all(files.map((file) => readFile(here(file), "utf8")));
      return [name, "=".repeat(name.length), ...texts.map((text) => text.trim())].join("\n\n");
    }),
  );
  return `${parts.join("\n\n\n").replaceAll("\r\n", "\n")}\n`;
}

const made = { "charts.js": await program(), "charts.licences.txt": await licences() };
for (const [name, text] of Object.entries(made)) {
  if (!process.argv.includes("--check")) {
    await writeFile(PAGE + name, text);
  } else if ((await readFile(PAGE + name, "utf8").catch(() => "")) !== text) {
    console.error(`monitor/internal/report/page/${name} is not what dashboards/web makes: run node dashboards/web/build.mjs`);
    process.exitCode = 1;
  }
}
