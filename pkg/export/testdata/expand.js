// Expands JSON-LD documents as RDF, and fails on every term that no context defines. FILE... -> one N-Quads list for all.
const fs = require('fs');
const jsonld = require('jsonld');
const crateContext = JSON.parse(fs.readFileSync(require.resolve('ro-crate/lib/context.json')));

const documentLoader = async (url) => {
  if (!url.startsWith('https://w3id.org/ro/crate/')) throw new Error('a context that nobody has: ' + url);
  return {document: crateContext, documentUrl: url};
};

(async () => {
  for (const file of process.argv.slice(2)) {
    const doc = JSON.parse(fs.readFileSync(file));
    process.stdout.write(await jsonld.toRDF(doc, {safe: true, base: 'https://crate.example/', format: 'application/n-quads', documentLoader}));
  }
})().catch((e) => { console.error(e.message, JSON.stringify(e.details)); process.exit(1); });
