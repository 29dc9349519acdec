/// The page's style. The colors are those of Okabe and Ito, which people with any color vision can distinguish.
let reportStyle = """
    :root {
    --paper: #f7f7f5; --card: #ffffff; --ink: #1d2125; --soft: #5c646c; --line: #dde0e3; --strip: #f1f2f3;
    --heat: #0a4d86; --plain: #eef1f4; --mark: #d55e00;
    --s1: #0072b2; --s2: #e69f00; --s3: #009e73; --s4: #cc79a7; --s5: #d55e00; --s6: #56b4e9; --on1: #ffffff;
    }
    @media screen and (prefers-color-scheme: dark) {
    :root {
    --paper: #121518; --card: #1a1e22; --ink: #e7e9eb; --soft: #a2aab2; --line: #343a41; --strip: #21262b;
    --heat: #8fd0ff; --plain: #23292f; --mark: #ff9a4a; --s1: #4aa3df; --on1: #101214;
    }
    }
    * { box-sizing: border-box; }
    body {
    margin: 0 auto; padding: 40px 20px 48px; max-width: 1040px; background: var(--paper); color: var(--ink);
    font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
    }
    h1 { margin: 0 0 16px; font-size: 30px; line-height: 1.2; letter-spacing: -0.01em; overflow-wrap: anywhere; }
    h2 { margin: 0 0 4px; font-size: 20px; line-height: 1.3; }
    p { margin: 0 0 14px; }
    .facts { display: grid; grid-template-columns: max-content 1fr; gap: 3px 18px; margin: 0 0 24px; font-size: 15px; }
    .facts dt { color: var(--soft); }
    .facts dd { margin: 0; overflow-wrap: anywhere; }
    .tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); gap: 16px; margin: 0 0 20px; }
    .tile, section {
    background: var(--card); border: 1px solid var(--line); border-radius: 12px;
    }
    .tile { padding: 14px 20px; margin: 0; }
    .tile b { display: block; font-size: 28px; line-height: 1.25; font-variant-numeric: tabular-nums; }
    .tile span { display: block; color: var(--soft); font-size: 14px; line-height: 1.45; }
    section { padding: 22px 24px; margin: 0 0 20px; }
    figure { margin: 12px 0 0; }
    figcaption, .note { color: var(--soft); font-size: 14px; line-height: 1.5; max-width: 86ch; }
    figcaption { margin-top: 10px; }
    .pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(400px, 100%), 1fr)); gap: 20px; }
    pre {
    margin: 12px 0 0; padding: 14px 16px; background: var(--strip); border-radius: 8px; white-space: pre-wrap;
    overflow-wrap: anywhere; font: 14px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
    }
    pre .prompt { font-weight: 700; }
    .wide { overflow-x: auto; margin: 12px 0 0; }
    .wide > svg { min-width: 680px; }
    table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
    th, td { padding: 6px 8px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
    thead th { color: var(--soft); font-weight: 500; line-height: 1.3; vertical-align: bottom; white-space: normal; }
    thead th.group { text-align: center; border-bottom: 0; padding-bottom: 0; }
    th:first-child[scope="row"], thead tr:first-child th:first-child { text-align: left; padding-left: 0; }
    tbody tr:last-child > * { border-bottom: 0; }
    svg { display: block; width: 100%; height: auto; font-size: 12px; }
    svg text { fill: var(--ink); }
    svg text.label { fill: var(--soft); }
    svg text.heading, svg text.name { font-weight: 600; }
    svg text.heading { font-size: 13px; }
    svg text.value { font-variant-numeric: tabular-nums; }
    svg text.total { paint-order: stroke; stroke: var(--card); stroke-width: 5px; }
    svg text.token { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
    .grid { stroke: var(--line); }
    .axis { stroke: var(--soft); }
    .strip { fill: var(--strip); }
    .curve { fill: none; stroke: var(--mark); stroke-width: 2; stroke-dasharray: 6 4; }
    .point { fill: var(--s1); stroke: var(--card); stroke-width: 1.5; }
    .point.base { fill: var(--card); stroke: var(--s1); stroke-width: 2.5; }
    .cells { fill: none; stroke-width: 1; shape-rendering: crispEdges; }
    .cells.plain { stroke: var(--plain); }
    .cells.heat { stroke: var(--heat); }
    .cell.plain { fill: var(--plain); }
    .empty { fill: none; stroke: var(--line); }
    .cell.heat { fill: var(--heat); }
    .touch { fill: transparent; }
    .touch:hover { stroke: var(--mark); stroke-width: 1.5; }
    .newest { fill: var(--mark); }
    .h1 { opacity: .13; } .h2 { opacity: .22; } .h3 { opacity: .32; } .h4 { opacity: .41; } .h5 { opacity: .51; }
    .h6 { opacity: .61; } .h7 { opacity: .71; } .h8 { opacity: .8; } .h9 { opacity: .9; } .h10 { opacity: 1; }
    .bar { stroke: var(--card); stroke-width: 1; }
    .bar.s1 { fill: var(--s1); } .bar.s2 { fill: var(--s2); } .bar.s3 { fill: var(--s3); }
    .bar.s4 { fill: var(--s4); } .bar.s5 { fill: var(--s5); } .bar.s6 { fill: var(--s6); }
    svg text.on { fill: #101214; font-variant-numeric: tabular-nums; }
    svg text.on.s1 { fill: var(--on1); }
    footer { color: var(--soft); font-size: 13px; }
    @media (max-width: 600px) { section { padding: 16px 14px; } .facts { grid-template-columns: 1fr; } }
    @media print {
    @page { margin: 12mm; }
    body { padding: 0; background: none; font-size: 10pt; }
    h1 { font-size: 18pt; }
    section, .tile, figure, tr { break-inside: avoid; }
    section { padding: 12px 14px; margin-bottom: 12px; }
    .tile b { font-size: 15pt; }
    .pair { grid-template-columns: 1fr 1fr; }
    .wide { overflow: visible; }
    .wide > svg { min-width: 0; }
    table { font-size: 7.5pt; }
    th, td { padding: 3px 4px; }
    figcaption, .note, .tile span { font-size: 8.5pt; }
    * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
    }
    """
