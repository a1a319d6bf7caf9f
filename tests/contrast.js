() => {
  // The texts whose contrast to what is behind them is below 4.5, which WCAG asks for.
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const rgb = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const over = (under, top) => [0, 1, 2].map(i => (top[i] * top[3] + under[i] * (255 - top[3])) / 255);
  const behind = node => {
    const seen = [];
    for (; node; node = node.parentElement) seen.push(rgb(getComputedStyle(node).backgroundColor));
    return seen.reverse().reduce(over, [255, 255, 255]);
  };
  const ratio = node => {
    const [dark, bright] = [light(rgb(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => x - y);
    return (bright + 0.05) / (dark + 0.05);
  };
  const written = node => [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
  const seen = [...document.querySelectorAll("body *")].filter(node => node.checkVisibility() && written(node));
  return seen
    .filter(node => !node.closest(".hidden, .skip, :disabled, svg, script") && ratio(node) < 4.5)
    .map(node => `${node.tagName} ${node.className} ${ratio(node).toFixed(2)}`);
}
