// Validates the crate in a folder with the ro-crate package, and prints what it found but for what succeeded, as JSON.
const fs = require('fs');
const path = require('path');
const contextFile = require.resolve('ro-crate/lib/context.json');
globalThis.fetch = async () => ({ok: true, json: async () => JSON.parse(fs.readFileSync(contextFile))});
const {Validator} = require('ro-crate/lib/validator');

(async () => {
  const folder = process.argv[2];
  const v = new Validator();
  v.parseJSON(JSON.parse(fs.readFileSync(path.join(folder, 'ro-crate-metadata.json'))));
  await v.crate.resolveContext();
  await v.validate();
  const files = {};
  for (const name of fs.readdirSync(folder, {recursive: true})) {
    if (name === 'ro-crate-metadata.json' || fs.lstatSync(path.join(folder, name)).isDirectory()) continue;
    files[name] = {exists: true, inCrate: false, isDir: false};
  }
  v.checkFiles(files);
  const bad = v.results.filter((r) => r.status !== 'success');
  for (const [name, f] of Object.entries(files)) if (!f.inCrate || !f.exists) bad.push({id: 'file', entity: name, status: 'error'});
  console.log(JSON.stringify({checks: v.results.length, bad}));
})().catch((e) => { console.error(e); process.exit(1); });
