(() => {
  'use strict';
  // Following a link to a decision opens it.
  const open = hash => {
    const found = hash.length > 1 && document.getElementById(hash.slice(1));
    if (found && found.tagName === 'DETAILS') {
      found.open = true;
      found.scrollIntoView({block: 'nearest'});
    }
  };
  document.addEventListener('click', event => {
    const link = event.target.closest('a[href^="#"]');
    if (link) open(link.getAttribute('href'));
  });
  addEventListener('hashchange', () => open(location.hash));
  open(location.hash);

  // A tooltip with the values of a chart at the pointer.
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  document.body.append(tip);
  const span = seconds => {
    const s = Math.round(seconds), d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
    if (d) return d + 'd' + (h ? h + 'h' : '');
    if (h) return h + 'h' + (m ? m + 'm' : '');
    return m ? m + 'm' : s + 's';
  };
  const height = (points, x) => {
    const after = points.findIndex(point => point[0] >= x);
    if (after < 1) return after === 0 && points[0][0] === x ? points[0][1] : null;
    const [a, b] = [points[after - 1], points[after]];
    return b[0] === a[0] ? b[1] : a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]);
  };
  for (const svg of document.querySelectorAll('svg[data-x]')) {
    const [left, right, from, to] = svg.dataset.x.split(' ').map(Number);
    const [bottom, top, low, high] = svg.dataset.y.split(' ').map(Number);
    const unit = svg.dataset.unit;
    let shapes;
    const cross = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    cross.setAttribute('class', 'cross');
    svg.append(cross);
    const leave = () => {
      tip.hidden = true;
      cross.removeAttribute('d');
    };
    svg.addEventListener('pointerleave', leave);
    svg.addEventListener('pointermove', event => {
      shapes ??= [...svg.querySelectorAll('path[data-name]')].map(path => {
        const points = path.getAttribute('d').replace(/[MZ]/g, '').split('L').map(point => point.split(' ').map(Number));
        if (!('area' in path.dataset)) return {name: path.dataset.name, upper: points};
        const half = points.length / 2;
        return {name: path.dataset.name, upper: points.slice(0, half), lower: points.slice(half).reverse()};
      });
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
      if (!shapes.length || x < left || x > right) return leave();
      const value = from + (x - left) / (right - left) * (to - from);
      const lines = [span('log' in svg.dataset ? 10 ** value : value)];
      for (const {name, upper, lower} of shapes) {
        const [up, down] = [height(upper, x), lower ? height(lower, x) : bottom];
        if (up === null || down === null) continue;
        const amount = low + (down - up) / (bottom - top) * (high - low);
        lines.push(name + ': ' + (unit === '%' ? amount.toFixed(1) : Math.round(amount)) + unit);
      }
      cross.setAttribute('d', `M${x} ${top}V${bottom}`);
      tip.textContent = lines.join('\n');
      tip.hidden = false;
      tip.style.left = Math.max(0, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)) + 'px';
      tip.style.top = Math.max(0, event.clientY - tip.offsetHeight - 10) + 'px';
    });
  }
})();
