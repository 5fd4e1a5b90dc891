const box = document.querySelector('input');
const rows = [...document.querySelector('table').tBodies].at(-1).rows;
box.parentElement.hidden = false;
box.addEventListener('input', () => {
  const text = box.value.trim().toLowerCase();
  for (const row of rows)
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(text);
});
