"""Looks and behaviour of the profile's page: colours, style sheet, the script of its tool tips."""

# Told apart by people who see colours differently, on light and on dark ground.
COLOURS = ("#4477aa", "#ee8866", "#44aa99", "#bb5566", "#ddaa33", "#7766bb", "#77aadd", "#999933",
           "#cc79a7", "#66a61e", "#a6761d", "#888888")

STYLE = """
:root{--ground:#fafafa;--card:#fff;--ink:#1c2128;--soft:#667080;--line:#e3e6ea;--curve:#1c2128}
@media(prefers-color-scheme:dark){:root{--ground:#14171c;--card:#1d2128;--ink:#e6e9ee;
--soft:#98a2b0;--line:#333a44;--curve:#f2f4f7}}
*{box-sizing:border-box}
body{margin:0 auto;padding:28px;max-width:1400px;background:var(--ground);color:var(--ink);
font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{margin:0;font-size:24px}header p{margin:2px 0 20px;color:var(--soft)}
h2{margin:0 0 12px;font-size:15px}h3{margin:0;font-size:12px;font-weight:500;color:var(--soft)}
small{color:var(--soft);font-weight:400;font-size:12px}
section{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:16px 18px;
margin-bottom:16px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:16px}
.tiles b{display:block;font-size:22px;font-weight:600}
.bar{display:flex;height:22px;border-radius:5px;overflow:hidden}.bar i{display:block;min-width:1px}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;margin:10px 0 0;padding:0}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:6px}
.zoom{float:right}.zoom button{font:inherit;width:28px;margin-left:4px;color:var(--ink);
background:var(--ground);border:1px solid var(--line);border-radius:6px;cursor:pointer}
.scroll{overflow-x:auto;overflow-y:hidden}.wide{width:100%;min-width:100%}
.lane{position:relative}.lane i{position:absolute;overflow:hidden;white-space:nowrap;
font-style:normal;font-size:11px}
.lane>i{height:23px;line-height:23px;text-indent:3px;color:#fff;border-radius:3px;
box-shadow:inset -1px 0 var(--card)}
.lane .stage{background:var(--line);color:var(--soft)}
.arena{height:260px;border-left:1px solid var(--line);border-bottom:1px solid var(--line)}
.arena i{padding:0;border-radius:0;box-shadow:inset 0 0 0 .5px var(--card);background:#77aadd;
min-width:1px}
.arena .work{background:repeating-linear-gradient(45deg,#ddaa33,#ddaa33 3px,#e8c97a 3px,
#e8c97a 6px)}
.arena svg{position:absolute;inset:0;width:100%;height:100%;pointer-events:none}
polyline{fill:none;stroke:var(--curve);stroke-width:1.5;vector-effect:non-scaling-stroke}
.axis{position:relative;overflow:hidden;height:22px;margin-top:4px;border-top:1px solid var(--line)}
.axis i{position:absolute;font-style:normal;font-size:11px;color:var(--soft);padding-left:3px;
border-left:1px solid var(--line)}
table{width:100%;border-collapse:collapse}th{text-align:left;font-size:12px;font-weight:500;
color:var(--soft)}
td,th{padding:5px 8px;border-bottom:1px solid var(--line);vertical-align:top}
td small{display:block;max-width:460px;overflow-wrap:anywhere}td{overflow-wrap:anywhere}
td:first-child{white-space:nowrap;color:var(--soft)}
.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.share{width:140px}.share i{display:block;height:12px;margin-top:4px;border-radius:3px}
#tip{position:fixed;display:none;z-index:9;max-width:440px;padding:7px 10px;border-radius:7px;
background:#111820;color:#f4f6f8;font-size:12px;white-space:pre-line;pointer-events:none;
overflow-wrap:anywhere;box-shadow:0 3px 14px #0006}
"""

SCRIPT = """
const tip=document.getElementById('tip');
document.addEventListener('mousemove',event=>{
  const at=event.target.closest('[data-tip]');
  tip.style.display=at?'block':'none';
  if(!at)return;
  tip.textContent=at.dataset.tip;
  tip.style.left=Math.min(event.clientX+14,innerWidth-tip.offsetWidth-8)+'px';
  tip.style.top=Math.min(event.clientY+14,innerHeight-tip.offsetHeight-8)+'px';
});
let zoom=1;
const scrolls=[...document.querySelectorAll('.scroll')];
document.querySelectorAll('[data-zoom]').forEach(button=>button.onclick=()=>{
  zoom=Math.min(Math.max(zoom*button.dataset.zoom,1),256);
  scrolls.forEach(s=>s.firstElementChild.style.width=100*zoom+'%');
});
scrolls.forEach(s=>s.onscroll=()=>scrolls.forEach(o=>o.scrollLeft=s.scrollLeft));
"""
