// A report's only script.  The page is whole without it: this sorts, filters, shows one job at a time, and tells what a point is.
// Reads the data that the page carries; whatever came from outside becomes a text node, never markup.
(() => {
  "use strict";
  const doc = document;
  const data = JSON.parse(doc.getElementById("data").textContent);
  doc.documentElement.classList.add("js");
  const CHUNK = 100;

  const make = (name, attributes = {}, ...inner) => {
    const out = doc.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) out.setAttribute(key, value);
    }
    out.append(...inner);
    return out;
  };

  // figures as the rest of skyplan writes them: from ten-thousandths, rounded half to even

  const rounded = (whole, by) => {
    const low = Math.floor(whole / by), rest = whole - low * by;
    return rest * 2 > by || (rest * 2 === by && low % 2) ? low + 1 : low;
  };
  const grouped = (digits) => digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  const usd = (ticks, least = false) => {
    if (ticks === null) return "unknown";
    const size = Math.abs(ticks), places = size >= 10000 || size === 0 ? 2 : 4;
    const count = places === 2 ? rounded(size, 100) : size;
    const whole = Math.floor(count / 10 ** places), rest = String(count % 10 ** places).padStart(places, "0");
    return `${least ? ">= " : ""}$${ticks < 0 ? "-" : ""}${grouped(String(whole))}.${rest}`;
  };
  const duration = (ticks) => {
    const hours = ticks / 10000;
    if (hours < 1) {
      const minutes = hours * 60, low = Math.floor(minutes);
      return `${minutes - low === 0.5 ? low + (low % 2) : Math.round(minutes)} min`;
    }
    const [whole, rest] = (ticks % 10000 === 2500 ? (ticks - 1) / 10000 : hours).toFixed(1).split(".");
    return `${grouped(whole)}.${rest} h`;
  };
  const gapped = (ticks) => (!ticks ? "-" : `${ticks > 0 ? "+" : "-"}${usd(Math.abs(ticks))}`);

  // order: what is unknown stands last both ways, and what is equal stays as it was

  const sorted = (positions, value, down) =>
    positions
      .map((at) => [at, value(at)])
      .sort(([a, x], [b, y]) => {
        if (x === null || y === null) return (x === null) - (y === null) || a - b;
        const order = x < y ? -1 : x > y ? 1 : 0;
        return (down ? -order : order) || a - b;
      })
      .map(([at]) => at);

  const sortable = (table, first, onSort) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        onSort(column, down);
      });
    });
    if (first !== null) heads[first].setAttribute("aria-sort", "ascending");
  };

  const debounced = (call) => {
    let waiting = 0;
    return () => {
      cancelAnimationFrame(waiting);
      waiting = requestAnimationFrame(call);
    };
  };
  const search = (label, call) => {
    const input = make("input", { type: "search", autocomplete: "off", spellcheck: "false" });
    input.addEventListener("input", debounced(call));
    return [input, make("label", {}, label, input)];
  };

  // small tables: sorted and filtered as they stand in the page

  const small = (table) => {
    const body = table.tBodies[0], rows = [...body.rows];
    const value = (column) => (at) => {
      const cell = rows[at].cells[column], told = cell.dataset.v;
      return told === undefined ? cell.textContent : told === "" ? null : Number(told);
    };
    sortable(table, null, (column, down) => {
      body.append(...sorted(rows.map((_, at) => at), value(column), down).map((at) => rows[at]));
    });
    if (!table.classList.contains("filtered") || rows.length < 4) return;
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const count = make("output", { "aria-live": "polite" });
    const [input, label] = search("Filter", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, at) => {
        row.hidden = !words.every((word) => texts[at].includes(word));
        shown += !row.hidden;
      });
      count.value = words.length ? `${shown} of ${rows.length}` : "";
    });
    table.closest(".scroll").before(make("div", { class: "controls" }, label, count));
  };

  // the market of a job

  const market = (job, key) => {
    const table = doc.getElementById(`${key}-offers`);
    if (!table) return;
    const { words, columns: c, shown: size } = job.market, body = table.tBodies[0];
    const told = (name) => (at) => words[name][c[name][at]];
    const text = Object.fromEntries(Object.keys(words).map((name) => [name, told(name)]));
    const chosen = job.choice_position;
    const base = job.choice ? Math.round(Number(job.choice.total_usd) * 10000) : null;
    const gap = (at) => (base === null ? null : c.total[at] - base);
    const figures = ["compute", "lost", "egress", "other"];
    // words are listed in their order: positions among them compare as they do
    const values = [
      (at) => at, ...["place", "what", "capacity", "gpu"].map((name) => (at) => c[name][at]), (at) => c.per_hour[at], (at) => c.total[at], gap, (at) => c.finish[at],
      ...figures.map((name) => (at) => c[name][at]),
    ];
    const all = Array.from({ length: size }, (_, at) => at);
    const haystack = all.map((at) => ["place", "what", "capacity", "gpu"].map((name) => text[name](at)).join(" ").toLowerCase());
    const state = { order: all, kept: all, limit: CHUNK };
    const cache = new Map();

    const row = (at) => {
      if (cache.has(at)) return cache.get(at);
      const out = make("tr", { id: `${key}-r${at}`, class: at === chosen ? "choice" : null, tabindex: "-1" });
      const cell = (inner, number) => out.append(make("td", number ? { class: "n" } : {}, ...inner));
      cell([String(at + 1)], true);
      const marks = [];
      if (at === chosen) marks.push(" ", make("span", { class: "mark-choice" }, "choice"));
      if (c.edge[at]) marks.push(" ", make("span", { class: "mark-edge" }, "edge"));
      cell([text.place(at), ...marks]);
      for (const name of ["what", "capacity", "gpu"]) cell([text[name](at)]);
      cell([usd(c.per_hour[at])], true);
      cell([usd(c.total[at], Boolean(c.at_least[at]))], true);
      cell([gapped(gap(at))], true);
      cell([duration(c.finish[at])], true);
      for (const name of figures) cell([usd(c[name][at])], true);
      cache.set(at, out);
      return out;
    };

    const find = make("output", { "aria-live": "polite" });
    const more = make("button", { type: "button", class: "more" });
    const whole = make("button", { type: "button", class: "more" });
    // the first rows at once, the others frame by frame: a sort of a thousand shown rows is seen as soon as one of a hundred
    let rest = 0;
    const draw = (at_once = CHUNK) => {
      cancelAnimationFrame(rest);
      const shown = state.kept.slice(0, state.limit);
      body.replaceChildren(...shown.slice(0, at_once).map(row));
      const go_on = (from) => {
        if (from >= shown.length) return;
        rest = requestAnimationFrame(() => {
          body.append(...shown.slice(from, 3 * from).map(row));
          go_on(3 * from);
        });
      };
      go_on(at_once);
      const left = state.kept.length - state.limit;
      find.value = state.kept.length === size ? `${size.toLocaleString("en")} in all` : `${state.kept.length.toLocaleString("en")} of ${size.toLocaleString("en")}`;
      more.hidden = left <= 0;
      whole.hidden = left <= CHUNK;
      more.textContent = `Show ${Math.min(CHUNK, left)} more`;
      whole.textContent = `Show all ${state.kept.length.toLocaleString("en")}`;
    };
    more.addEventListener("click", () => { state.limit += CHUNK; draw(); });
    whole.addEventListener("click", () => { state.limit = size; draw(); });

    const choices = ["cloud", "capacity", "gpu"].map((name) => {
      const select = make("select", {}, make("option", { value: "" }, "all"), ...words[name].map((word, at) => make("option", { value: String(at) }, word)));
      select.addEventListener("change", () => filter());
      return [name, select, make("label", {}, name === "gpu" ? "GPUs" : name, select)];
    });
    const [input, label] = search("Search", () => filter());
    const edge = make("input", { type: "checkbox" });
    edge.addEventListener("change", () => filter());
    const chart = doc.querySelector(`figure.chart[data-job="${key}"]`);
    const points = chart ? scatter(chart, c, text, key, (at) => show(at)) : null;

    const filter = () => {
      const asked = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const picked = choices.filter(([, select]) => select.value !== "").map(([name, select]) => [name, Number(select.value)]);
      const keeps = (at) => asked.every((word) => haystack[at].includes(word)) && picked.every(([name, one]) => c[name][at] === one) && (!edge.checked || c.edge[at]);
      state.kept = state.order.filter(keeps);
      state.limit = CHUNK;
      draw();
      if (points) points(state.kept);
    };
    const show = (at) => {
      if (!state.kept.includes(at)) {
        input.value = "";
        edge.checked = false;
        choices.forEach(([, select]) => { select.value = ""; });
        filter();
      }
      const place = state.kept.indexOf(at);
      state.limit = Math.max(state.limit, Math.ceil((place + 1) / CHUNK) * CHUNK);
      if (!row(at).isConnected) draw(state.limit);
      body.querySelectorAll(".found").forEach((one) => one.classList.remove("found"));
      const found = row(at);
      found.classList.add("found");
      found.scrollIntoView({ block: "center" });
      found.focus({ preventScroll: true });
    };

    sortable(table, 0, (column, down) => {
      state.order = sorted(all, values[column], down);
      const kept = new Set(state.kept);
      state.kept = state.order.filter((at) => kept.has(at));
      draw();
    });
    const scroller = table.closest(".scroll");
    scroller.before(make("div", { class: "controls" }, label, ...choices.map(([, , one]) => one), make("label", { class: "tick" }, edge, "on the edge only"), find));
    scroller.after(more, whole);
    draw();
  };

  // the drawing of cost and finish: the nearest point is told, and leads to its row

  function scatter(figure, c, text, key, open) {
    const svg = figure.querySelector("svg.scatter");
    const scale = (told) => {
      const [low, high, log, start, end] = told.split(" ").map(Number), of = log ? Math.log : (v) => v;
      return (ticks) => start + ((of(ticks / 10000) - of(low)) / (of(high) - of(low))) * (end - start);
    };
    const sx = scale(svg.dataset.x), sy = scale(svg.dataset.y);
    const xs = c.finish.map(sx), ys = c.total.map(sy);
    const known = new Set(["aws", "gcp", "azure", "nebius"]);
    const kinds = xs.map((_, at) => `${known.has(text.cloud(at)) ? text.cloud(at) : "split"} ${text.capacity(at) === "spot" ? "spot" : "fixed"}`);
    let kept = xs.map((_, at) => at);
    const tip = make("div", { class: "tip", role: "status" });
    tip.hidden = true;
    const ring = doc.createElementNS("http://www.w3.org/2000/svg", "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("r", "10");
    ring.setAttribute("visibility", "hidden");
    svg.append(ring);
    figure.append(tip);
    svg.querySelectorAll("a.point title").forEach((one) => one.remove());

    const tell = (at) => {
      if (at === null) {
        tip.hidden = true;
        ring.setAttribute("visibility", "hidden");
        return;
      }
      ring.setAttribute("cx", xs[at]);
      ring.setAttribute("cy", ys[at]);
      ring.setAttribute("visibility", "visible");
      tip.replaceChildren(
        make("b", {}, `${text.what(at)} ${text.capacity(at)}`),
        make("span", {}, text.place(at)),
        make("span", {}, `${usd(c.total[at], Boolean(c.at_least[at]))} to finish, ${usd(c.per_hour[at])}/h, ${duration(c.finish[at])}`),
        make("span", {}, `${text.gpu(at)}; number ${at + 1} by total${c.edge[at] ? ", on the edge" : ""}`),
      );
      tip.hidden = false;
      const box = svg.getBoundingClientRect(), outer = figure.getBoundingClientRect(), by = box.width / svg.viewBox.baseVal.width;
      const x = xs[at] * by + box.left - outer.left + figure.scrollLeft, y = ys[at] * by + box.top - outer.top;
      const right = x + 16 + tip.offsetWidth <= box.width + box.left - outer.left + figure.scrollLeft;
      tip.style.left = `${Math.max(0, right ? x + 16 : x - 16 - tip.offsetWidth)}px`;
      tip.style.top = `${Math.max(0, y - tip.offsetHeight / 2)}px`;
    };
    const nearest = (event) => {
      const box = svg.getBoundingClientRect(), by = svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * by, y = (event.clientY - box.top) * by;
      let best = null, least = 20 * 20;
      for (const at of kept) {
        const far = (xs[at] - x) ** 2 + (ys[at] - y) ** 2;
        if (far < least) [best, least] = [at, far];
      }
      return best;
    };
    svg.addEventListener("pointermove", (event) => {
      const at = nearest(event);
      svg.style.cursor = at === null ? "" : "pointer";
      tell(at);
    });
    svg.addEventListener("pointerleave", () => tell(null));
    svg.addEventListener("click", (event) => {
      const anchor = event.target.closest("a.point");
      const at = event.detail === 0 && anchor ? Number(anchor.dataset.row) : nearest(event);
      if (anchor) event.preventDefault();
      if (at !== null) open(at);
    });
    const anchors = [...svg.querySelectorAll("a.point")];
    anchors.forEach((anchor, k) => {
      anchor.addEventListener("focus", () => tell(Number(anchor.dataset.row)));
      anchor.addEventListener("blur", () => tell(null));
      anchor.addEventListener("keydown", (event) => {
        const step = { ArrowRight: -1, ArrowUp: -1, ArrowLeft: 1, ArrowDown: 1 }[event.key];
        const next = step && anchors[k + step];
        if (event.key === "Escape") tell(null);
        if (next) {
          event.preventDefault();
          next.focus();
        }
      });
    });
    return (now) => {
      kept = now;
      const paths = {};
      for (const at of now) (paths[kinds[at]] ||= []).push(`M${xs[at].toFixed(1)} ${ys[at].toFixed(1)}h0`);
      svg.querySelectorAll("path.dots").forEach((path) => path.setAttribute("d", (paths[`${path.dataset.cloud} ${path.dataset.sold}`] || []).join("")));
      tell(null);
    };
  }

  // what scrolls can be reached by the keyboard, what does not is no stop on its way

  const reach = () => {
    for (const one of doc.querySelectorAll(".panel:not([hidden]) .scroll")) {
      if (one.scrollWidth > one.clientWidth) one.setAttribute("tabindex", "0");
      else one.removeAttribute("tabindex");
    }
  };
  addEventListener("resize", debounced(reach));

  // a job is taken over when it is looked at: forty open as fast as one

  const waiting = new Map(data.jobs.map((job, k) => [`j${k}`, job]));
  const taken = new Set();
  const ready = (panel) => {
    if (taken.has(panel.id)) return;
    taken.add(panel.id);
    panel.querySelectorAll("table.sortable").forEach(small);
    if (waiting.has(panel.id)) market(waiting.get(panel.id), panel.id);
  };

  // one job at a time

  const nav = doc.querySelector("nav.jobs ul");
  const panels = [...doc.querySelectorAll(".panel")];
  if (nav && panels.length > 1) {
    const tabs = [...nav.querySelectorAll("a")];
    nav.setAttribute("role", "tablist");
    nav.setAttribute("aria-label", "Jobs");
    tabs.forEach((tab, k) => {
      tab.parentElement.setAttribute("role", "presentation");
      tab.setAttribute("role", "tab");
      tab.id = `tab-${panels[k].id}`;
      tab.setAttribute("aria-controls", panels[k].id);
      panels[k].setAttribute("role", "tabpanel");
      panels[k].setAttribute("tabindex", "-1");
    });
    const open = (k, focus) => {
      panels.forEach((panel, at) => { panel.hidden = at !== k; });
      tabs.forEach((tab, at) => {
        tab.setAttribute("aria-selected", String(at === k));
        tab.setAttribute("tabindex", at === k ? "0" : "-1");
      });
      ready(panels[k]);
      reach();
      if (focus) tabs[k].focus();
    };
    const follow = () => {
      const target = location.hash && doc.getElementById(decodeURIComponent(location.hash.slice(1)));
      const panel = target && target.closest(".panel");
      if (panel) open(panels.indexOf(panel), false);
      if (target && target !== panel) target.scrollIntoView();
      return Boolean(panel);
    };
    tabs.forEach((tab, k) => {
      tab.addEventListener("click", (event) => {
        event.preventDefault();
        history.replaceState(null, "", `#${panels[k].id}`);
        open(k, true);
        scrollTo(0, 0);
      });
      tab.addEventListener("keydown", (event) => {
        const to = { ArrowRight: k + 1, ArrowLeft: k - 1, Home: 0, End: tabs.length - 1 }[event.key];
        if (to !== undefined) {
          event.preventDefault();
          open((to + tabs.length) % tabs.length, true);
        } else if (event.key === " ") {
          event.preventDefault();
          tab.click();
        }
      });
    });
    addEventListener("hashchange", follow);
    if (!follow()) open(0, false);
  } else {
    panels.forEach(ready);
    reach();
  }

  // the switch of colours: as the system has it, or one of the two

  const themes = ["auto", "light", "dark"];
  const button = make("button", { type: "button", class: "theme" });
  const name = () => { button.textContent = `Colours: ${doc.documentElement.dataset.theme || "auto"}`; };
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(doc.documentElement.dataset.theme || "auto") + 1) % themes.length];
    if (next === "auto") delete doc.documentElement.dataset.theme;
    else doc.documentElement.dataset.theme = next;
    name();
  });
  name();
  doc.querySelector("header .bar").append(button);
})();
