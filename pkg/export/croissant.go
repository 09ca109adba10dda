package export

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/benchpin/benchpin/pkg/manifest"
)

// CroissantVersion is the version of the Croissant format that is written, as its conformsTo names it.
const CroissantVersion = "http://mlcommons.org/croissant/1.1"

// CroissantMediaType is the media type of a Croissant document.
const CroissantMediaType = `application/ld+json; profile="` + CroissantVersion + `"`

// mostPatterns is the number of glob patterns of a set of files above which extensions are not told apart any more.
const mostPatterns = 64

// object is a JSON object; encoding/json sorts its keys.
type object = map[string]any

// croissantContext is the context of appendix 1 of the Croissant specification 1.1, with W3C's PROV. Schema.org's terms are https, as in the data sets
// that come with the specification: its reference implementation knows no others.
func croissantContext() object {
	c := object{
		"@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/", "cr": "http://mlcommons.org/croissant/",
		"rai": "http://mlcommons.org/croissant/RAI/", "dct": "http://purl.org/dc/terms/", "prov": "http://www.w3.org/ns/prov#",
		"conformsTo": "dct:conformsTo",
		"data":       object{"@id": "cr:data", "@type": "@json"},
		"dataType":   object{"@id": "cr:dataType", "@type": "@vocab"},
		"examples":   object{"@id": "cr:examples", "@type": "@json"},
	}
	for _, term := range []string{
		"annotation", "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "excludes", "extract", "field", "fileObject", "fileProperty",
		"fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "readLines", "recordSet",
		"references", "regex", "repeated", "replace", "samplingRate", "sdVersion", "separator", "source", "subField", "transform", "unArchive", "value",
	} {
		c[term] = "cr:" + term
	}
	return c
}

// Croissant describes the data set of a source in the Croissant format 1.1. The document belongs beside manifest.json, and data is the path of the
// data set's folder from there, "." for the same. The bytes are a pure function of source, card and data.
//
// Croissant demands licence, page, creator and day of publication. What is missing or wrong is an ErrCard.
func Croissant(ctx context.Context, s *Source, card Card, data string) ([]byte, error) {
	err := card.check("Croissant", need{"the licence (--license URL)", card.License != ""}, need{"the data set's page (--url URL)", card.URL != ""},
		need{"a creator (--creator or --organization NAME)", card.creators()}, need{"the day of publication (--published YYYY-MM-DD)", card.Published != ""})
	if err != nil {
		return nil, fmt.Errorf("export croissant: %w", err)
	}
	data, err = dataPath(data)
	if err != nil {
		return nil, fmt.Errorf("export croissant: %w", err)
	}
	sets, err := fileSets(ctx, s.Manifest)
	if err != nil {
		return nil, fmt.Errorf("export croissant: %w", err)
	}
	h := s.Manifest.Header()
	doc := object{
		"@context": croissantContext(), "@type": "sc:Dataset", "conformsTo": CroissantVersion,
		"@id":  datasetURN(h.Root.String()),
		"name": card.Name, "description": card.Description, "license": card.License, "url": card.URL,
		"creator": creators(card), "datePublished": card.Published,
		"isLiveDataset": false,
		"identifier":    object{"@type": "sc:PropertyValue", "name": "root of the benchpin manifest", "propertyID": rootTerm, "sc:value": h.Root.String()},
	}
	if card.Name == "" {
		doc["name"] = datasetName(s)
	}
	if card.Description == "" {
		doc["description"] = datasetDescription(s)
	}
	if card.Publisher != "" {
		doc["publisher"] = object{"@type": "sc:Organization", "name": card.Publisher}
	}
	if card.Version != "" {
		doc["version"] = card.Version
	}
	if card.Citation != "" {
		doc["citeAs"] = card.Citation
	}
	if recipe := h.Recipe; recipe != nil {
		doc["prov:wasGeneratedBy"] = object{"@type": "prov:Activity", "prov:label": generatorName(recipe), "description": string(recipe)}
	}
	if l := h.Lineage; l != nil {
		var from []object
		for _, p := range l.From {
			from = append(from, object{"@id": datasetURN(p.Root.String())})
		}
		doc["prov:wasDerivedFrom"] = from
	}
	distribution := []object{}
	for _, name := range []string{s.headerName(), s.entriesName()} {
		distribution = append(distribution, fileObject(s.content(name)))
	}
	records := []object{}
	for _, set := range sets {
		distribution = append(distribution, set.fileSet(data))
		records = append(records, set.recordSet())
	}
	doc["distribution"], doc["recordSet"] = distribution, records
	return encode(doc)
}

// encode writes a document as people read it.
func encode(v any) ([]byte, error) {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return []byte(out.String()), nil
}

// dataPath is the path of the data set's folder with a slash behind it, "" for the folder of the document.
func dataPath(data string) (string, error) {
	if data == "." {
		return "", nil
	}
	clean := path.Clean(data)
	if data == "" || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(clean, `*?[\`) {
		return "", fmt.Errorf("path of the data %.200q: expected a relative path below the folder of the document, without the characters *?[\\", data)
	}
	if clean == "." {
		return "", nil
	}
	return clean + "/", nil
}

// fileObject describes one of the manifest's files, which stand beside the document.
func fileObject(c *Content) object {
	format, description := []string{c.MediaType, "application/json"}, "Pins every file of the data set: path, size, BLAKE3, under one root."
	if c.MediaType == manifest.EntriesMediaType {
		format, description = []string{c.MediaType, "application/zstd"}, "One line of JSON a file, sorted by path: path, size and BLAKE3. manifest.json pins it."
	}
	return object{"@type": "cr:FileObject", "@id": c.Name, "name": c.Name, "description": description, "contentUrl": escapePath(c.Name),
		"contentSize": fmt.Sprintf("%d B", c.Digests.Size), "encodingFormat": format, "sha256": c.Digests.Hex()}
}

// fileSet is a part of a data set: its files for training, for evaluation, or all.
type fileSet struct {
	name     string
	files    int64
	bytes    int64
	patterns map[string]bool
	formats  []string
	image    bool
}

// fileSets groups the files of a manifest: by the folders train and valid where a recipe made them, else all together. Its memory depends on the
// number of different patterns, which is bounded, and not on that of files.
func fileSets(ctx context.Context, m *manifest.Manifest) ([]*fileSet, error) {
	h := m.Header()
	sets := map[string]*fileSet{}
	format := ""
	if h.Layout != nil {
		format = h.Layout.Format
	}
	err := m.Entries(ctx, func(e manifest.Entry) error {
		name := "files"
		if top, _, found := strings.Cut(e.Path, "/"); found && h.Recipe != nil && (top == "train" || top == "valid") {
			name = top
		}
		set := sets[name]
		if set == nil {
			set = &fileSet{name: name, patterns: map[string]bool{}, formats: encodingFormats(format), image: format == "jpeg" || format == "png"}
			sets[name] = set
		}
		set.files++
		set.bytes += e.Size
		set.patterns[patternOf(e.Path, name != "files", len(set.patterns) < mostPatterns)] = true
		if len(set.patterns) > 2*mostPatterns {
			set.patterns = map[string]bool{"*": true, "**/*": true}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(sets), func(a, b *fileSet) int { return strings.Compare(a.name, b.name) }), nil
}

// patternOf is the glob pattern for a file: its depth and its extension, and, with top, the first folder.
func patternOf(file string, top, extension bool) string {
	folders := strings.Split(file, "/")
	base := folders[len(folders)-1]
	folders = folders[:len(folders)-1]
	for i := range folders {
		if i > 0 || !top {
			folders[i] = "*"
		}
	}
	pattern := "*"
	if ext := path.Ext(base); extension && len(ext) > 1 && len(ext) <= 16 && ext != base && !strings.ContainsAny(ext, `*?[\`) {
		pattern += ext
	}
	return strings.Join(append(folders, pattern), "/")
}

func (f *fileSet) fileSet(data string) object {
	var includes []string
	for _, p := range slices.Sorted(maps.Keys(f.patterns)) {
		includes = append(includes, data+p)
	}
	what := map[string]string{"train": "for training", "valid": "for evaluation", "files": "of the data set"}[f.name]
	return object{"@type": "cr:FileSet", "@id": f.name + "-files", "name": f.name + "-files",
		"description":    fmt.Sprintf("The %d files %s, %d bytes. manifest.json says which they are.", f.files, what, f.bytes),
		"encodingFormat": f.formats, "includes": includes}
}

func (f *fileSet) recordSet() object {
	from := func(property string) object {
		return object{"fileSet": object{"@id": f.name + "-files"}, "extract": object{"fileProperty": property}}
	}
	fields := []object{{"@type": "cr:Field", "@id": f.name + "/path", "name": "path", "description": "The path of a file.", "dataType": "sc:Text",
		"source": from("fullpath")}}
	if f.image {
		fields = append(fields, object{"@type": "cr:Field", "@id": f.name + "/image", "name": "image", "description": "The picture.",
			"dataType": "sc:ImageObject", "source": from("content")})
	}
	return object{"@type": "cr:RecordSet", "@id": f.name, "name": f.name, "description": "One record a file.", "key": object{"@id": f.name + "/path"},
		"field": fields}
}

// encodingFormats names a container by its media type, or, where there is none, by the page that defines it.
func encodingFormats(format string) []string {
	switch format {
	case "npz", "npy":
		return []string{"https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html"}
	case "hdf5":
		return []string{"application/x-hdf5"}
	case "tfrecord":
		return []string{"https://www.tensorflow.org/tutorials/load_data/tfrecord"}
	case "jpeg":
		return []string{"image/jpeg"}
	case "png":
		return []string{"image/png"}
	case "csv":
		return []string{"text/csv"}
	case "parquet":
		return []string{"application/vnd.apache.parquet", "application/x-parquet"} // registered, and what readers of Croissant know
	}
	return []string{"application/octet-stream"}
}

func creators(c Card) []object {
	var all []object
	for _, name := range c.Persons {
		all = append(all, object{"@type": "sc:Person", "name": name})
	}
	for _, name := range c.Organizations {
		all = append(all, object{"@type": "sc:Organization", "name": name})
	}
	return all
}

// rootTerm explains what the root of a manifest is.
const rootTerm = "https://github.com/benchpin/benchpin/blob/main/docs/manifest.md"

// datasetURN names a data set by its root.
func datasetURN(root string) string { return "urn:benchpin:dataset:" + root }

// datasetName is a name for a data set that nobody gave one: what made it, or its root.
func datasetName(s *Source) string {
	if s.Record != nil {
		return "data set of " + s.Record.Workload.Name
	}
	root := s.Manifest.Header().Root
	return "data set " + root.Encoded()[:16]
}

// datasetDescription says what is known of a data set.
func datasetDescription(s *Source) string {
	h := s.Manifest.Header()
	text := strconv.FormatInt(h.Count, 10) + " files, " + strconv.FormatInt(h.Bytes, 10) + " bytes"
	if l := h.Layout; l != nil {
		text += fmt.Sprintf(", in format %s", l.Format)
	}
	text += ", pinned by a benchpin manifest with the root " + h.Root.String() + "."
	if h.Recipe != nil {
		text += " Generated by " + generatorName(h.Recipe) + ": the recipe determines every byte."
	}
	if len(h.Exclude) > 0 {
		text += fmt.Sprintf(" Left out by intent is what these patterns match: %q.", h.Exclude)
	}
	if h.Lineage != nil {
		text += fmt.Sprintf(" Derived from %d other data sets by %q, says who pinned it.", len(h.Lineage.From), h.Lineage.By)
	}
	return text
}

// generatorName names the generator of a recipe, with version and seed.
func generatorName(recipe json.RawMessage) string {
	var r struct {
		Generator string `json:"generator"`
		Version   int    `json:"version"`
		Seed      string `json:"seed"`
	}
	if json.Unmarshal(recipe, &r) != nil || r.Generator == "" {
		return "an unknown generator"
	}
	return fmt.Sprintf("%s version %d, seed %s", r.Generator, r.Version, r.Seed)
}
