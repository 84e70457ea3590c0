/**
 * Makes expressions of views: sound ones by their grammar, the same with changes at random, and what only an attacker writes. A seed repeats them.
 */
import type { Random } from '#lib/random.ts'
import { definitionLimits } from '#model/limits.ts'

/** The columns that made expressions name. */
export const namedColumns = [
  { name: 'amount', type: 'DOUBLE', path: '$.amount' },
  { name: 'count', type: 'BIGINT', path: '$.count' },
  { name: 'name', type: 'VARCHAR', path: '$.name' },
  { name: 'paid', type: 'TIMESTAMP', path: '$.paid' },
  { name: 'tags', type: 'VARCHAR[]', path: '$.tags[*]' },
  { name: 'doc', type: 'JSON', path: '$.doc' },
  { name: 'odd "name\'; --', type: 'BIGINT', path: '$.odd' },
]

/** A word that no statement of ours has. */
export const mark = 'zq9'

export const kinds = ['sound', 'changed', 'wild', 'garbage', 'deep', 'quotes'] as const
export type ExpressionKind = (typeof kinds)[number]

const hostileTexts = [
  ...[
    '',
    ' ',
    'a',
    'x,y',
    mark,
    `${mark}' OR ''='`,
    `'; DROP TABLE ${mark}; --`,
    `\\' ${mark}`,
    '\\',
    '%',
    '_',
    '$$',
    `$$${mark}$$`,
  ],
  ...[
    '--',
    '/*',
    '*/',
    ';',
    '"',
    '""',
    '\n',
    '\t',
    '\u00a0',
    '\u2019',
    '\uff07',
    '\u202e',
    'é',
    '漢',
    '🙂',
    '\u0301',
    '?',
    '$1',
    ':x',
  ],
  ...['2026-01-01', '2026-01-01T00:00:00+05:00', '1', '-1.5e3', 'NaN', 'true', '{"a":1}', '[1,2]', 'a'.repeat(300)],
]
const patterns = [
  '^a',
  '(a|b)+',
  '[^a-z]{2,5}',
  '\\pL+',
  '.*',
  'a{10}',
  '\\Q.\\E',
  '(?i)x',
  `${mark}$`,
  "it''s",
  '(',
  '[',
  '\\C',
  'a{5000}',
]
const formats = ['%Y-%m-%d', '%d/%b/%Y:%H:%M:%S %z', '%Y %j', '%Y%', "%Y''%m", `${mark} %Y`]
const zones = ['Europe/Berlin', 'UTC', 'Asia/Kathmandu', 'IST', mark]
const typeNames = [
  ...[
    'BIGINT',
    'VARCHAR',
    'TIMESTAMP',
    'TIMESTAMPTZ',
    'DATE',
    'TIME',
    'JSON',
    'DECIMAL(9,2)',
    'HUGEINT',
    'UUID',
    'BLOB',
    'BOOLEAN',
  ],
  ...[
    'DOUBLE',
    'VARCHAR[]',
    'DATE[]',
    'TIMESTAMP[][]',
    'INTEGER[]',
    mark,
    `STRUCT(${mark} INT)`,
    'INTERVAL',
    'MAP(INT, INT)',
    `"${mark}"`,
  ],
]
const fields = [
  ...[
    '$$.topic',
    '$$.protocol',
    '$$.ingested_at',
    '$$.client_id',
    '$$.address',
    '$$.key_name',
    '$$.received_at',
    '$$.item_index',
  ],
  ...[`$$.headers['${mark}-h''x']`, `$$.headers.x-${mark}`, `$$.user_properties."${mark} i"`, '$$.nope', '$$'],
]
/** Parts that change what the text around them means. */
const fragments = [
  ...["'", "''", '"', '""', '\\', "\\'", '--', '--\n', '/*', '*/', '/*/*', '$$', '$a$', ';', "E'", "U&'", "X'", "B'", "N'", '`'],
  ...[
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    ',',
    '.',
    ':',
    '::',
    ':=',
    '=>',
    '->',
    '->>',
    '@',
    '@>',
    '#1',
    '?',
    '$1',
    '*',
    '**',
    '^',
    '&',
    '|',
  ],
  ...[
    '<<',
    '!',
    '~',
    '!~',
    '<=>',
    '\0',
    '\u0008',
    '\r',
    '\n',
    '\u00a0',
    '\u2028',
    '\ufeff',
    '\u2019',
    '\uff07',
    '\u202e',
    '\ud800',
    '🙂',
  ],
  ...[
    ' AND ',
    ' OR ',
    ' NOT ',
    ' NULL ',
    ' SELECT ',
    ' FROM records ',
    ' UNION SELECT 1 ',
    ' OVER () ',
    ' COLLATE nocase ',
    ' AS x ',
  ],
  ...[
    ' IN (SELECT 1) ',
    ' BETWEEN ',
    ' ESCAPE ',
    ' IS ',
    ' CASE ',
    ' END ',
    ' WHEN ',
    ' ELSE ',
    ' LIKE ',
    ' GLOB ',
    ' SIMILAR TO ',
  ],
  ...[' AT TIME ZONE ', ' INTERVAL 1 DAY ', ' lambda x: x ', ' x -> x ', '[x for x in tags]', "{'a': 1}", 'MAP {}', 'COLUMNS(*)'],
  ...[
    "read_text('/etc/passwd')",
    "getenv('HOME')",
    "getvariable('inner_pad_of_email_key')",
    'current_setting(',
    'now()',
    'random()',
  ],
  ...[
    'TRY(',
    'CAST(',
    'payload',
    'value_0',
    'tried_value_0',
    'records',
    'main.lower(',
    '"lower"(',
    'pragma_version()',
    mark,
    'zq9(',
  ],
]
const wildNames = [
  ...[
    'read_text',
    'read_csv',
    'read_blob',
    'getenv',
    'query',
    'query_table',
    'pragma_version',
    'now',
    'random',
    'error',
    'repeat',
    'lpad',
  ],
  ...[
    'current_setting',
    'getvariable',
    'json_serialize_sql',
    'json_execute_serialized_sql',
    'list_transform',
    'struct_pack',
    'unnest',
  ],
  ...[
    'sum',
    'count',
    'row',
    'encode',
    'unhex',
    'printf',
    'format',
    'regexp_replace',
    'list_reduce',
    'generate_series',
    mark,
    'main.lower',
  ],
]
const operators = [
  ...[
    '+',
    '-',
    '*',
    '/',
    '//',
    '%',
    '||',
    '=',
    '<>',
    '!=',
    '<',
    '>=',
    'AND',
    'OR',
    'LIKE',
    'NOT LIKE',
    'ILIKE',
    '~',
    'SIMILAR TO',
  ],
  ...['IS DISTINCT FROM', 'IN', '->>', '->', '^', '&', '|', '<<', '**', ';', '::', '@>', 'COLLATE', 'UNION'],
]

export class ExpressionMaker {
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
  }

  /** Returns an expression of a kind, and a type that it may have. */
  make(kind: ExpressionKind): { readonly text: string; readonly type: string } {
    const { text, type } = this.#made(kind)
    // A definition may have no longer ones.
    return { text: text.slice(0, definitionLimits.conditionCharsMax) || ' ', type }
  }

  kind(): ExpressionKind {
    const at = this.#below(20)
    return at < 7 ? 'sound' : at < 13 ? 'changed' : at < 16 ? 'wild' : at < 17 ? 'garbage' : at < 18 ? 'deep' : 'quotes'
  }

  pick<T>(from: readonly T[]): T {
    return from[this.#below(from.length)] as T
  }

  /** Returns a text of parts that change what is around them. */
  garbage(partsMax: number): string {
    return Array.from({ length: 1 + this.#below(partsMax) }, () =>
      this.#below(3) === 0 ? String.fromCodePoint(this.#below(this.#below(4) === 0 ? 0x11_0000 : 0x100)) : this.pick(fragments),
    ).join('')
  }

  #made(kind: ExpressionKind): { readonly text: string; readonly type: string } {
    const type = this.pick(['VARCHAR', 'DOUBLE', 'TIMESTAMP', 'BOOLEAN', 'VARCHAR[]', 'BIGINT', 'JSON'])
    switch (kind) {
      case 'sound':
        return this.#sound()
      case 'changed':
        return this.#changed(this.#sound())
      case 'wild':
        return { text: this.#wild(4), type }
      case 'garbage':
        return { text: this.garbage(30), type }
      case 'deep':
        return { text: this.#deep(), type }
      case 'quotes':
        return this.#quoted(type)
    }
  }

  #below(count: number): number {
    return Math.floor(this.#random.fraction() * count)
  }

  #sound(): { readonly text: string; readonly type: string } {
    const depth = 1 + this.#below(4)
    switch (this.#below(5)) {
      case 0:
        return { text: this.#text(depth), type: 'VARCHAR' }
      case 1:
        return { text: this.#number(depth), type: 'DOUBLE' }
      case 2:
        return { text: this.#time(depth), type: 'TIMESTAMP' }
      case 3:
        return { text: this.#list(depth), type: 'VARCHAR[]' }
      default:
        return { text: this.#boolean(depth), type: 'BOOLEAN' }
    }
  }

  #changed({ text, type }: { readonly text: string; readonly type: string }): { readonly text: string; readonly type: string } {
    let changed = text
    for (let left = 1 + this.#below(3); left > 0; left -= 1) {
      const from = this.#below(changed.length + 1)
      const to = from + this.#below(6)
      const inserted = [this.pick(fragments), '', changed.slice(to, to + this.#below(12)), this.#constant()][this.#below(4)] ?? ''
      changed = changed.slice(0, from) + inserted + changed.slice(this.#below(2) === 0 ? from : to)
    }
    return { text: changed, type }
  }

  #constant(): string {
    return `'${this.pick(hostileTexts).replaceAll("'", "''")}'`
  }

  #text(depth: number): string {
    if (depth <= 0) return this.#below(2) === 0 ? 'name' : this.#below(3) === 0 ? this.pick(fields) : this.#constant()
    const text = () => this.#text(depth - 1 - this.#below(2))
    const number = () => this.#number(depth - 2)
    const make = this.pick([
      () => `${this.pick(['lower', 'upper', 'trim', 'ltrim', 'rtrim', 'sha256', 'mask_ip', 'url_host', 'url_path'])}(${text()})`,
      () => `${this.pick(['left', 'right', 'substr', 'substring'])}(${text()}, ${number()})`,
      () => `trim(${text()}, ${this.#constant()})`,
      () => `concat(${text()}, ${number()}, ${text()})`,
      () => `${text()} || ${text()}`,
      () => `replace(${text()}, ${text()}, ${this.#constant()})`,
      () => `split_part(${text()}, ${this.#constant()}, ${1 + this.#below(5)})`,
      () => `hmac_sha256('${this.pick(['email_key', 'key', "it''s"])}', ${text()})`,
      () => `url_param(${text()}, ${this.#constant()})`,
      () => `regexp_extract(${text()}, '${this.pick(patterns)}', ${this.#below(3)})`,
      () => `${this.pick(['coalesce', 'greatest', 'least', 'nullif'])}(${text()}, ${text()})`,
      () => `if(${this.#boolean(depth - 2)}, ${text()}, ${text()})`,
      () => `CASE WHEN ${this.#boolean(depth - 2)} THEN ${text()} ELSE ${text()} END`,
      () => `${this.pick(['CAST', 'TRY_CAST'])}(${this.#any(depth - 1)} AS VARCHAR)`,
      () => `(${this.#list(depth - 1)})[${number()}]`,
    ])
    return make()
  }

  #number(depth: number): string {
    if (depth <= 0) {
      return this.pick([
        'amount',
        'count',
        '"odd ""name\'; --"',
        '5',
        '-1.5',
        '1e3',
        '170141183460469231731687303715884105727',
        '0.1',
      ])
    }
    const number = () => this.#number(depth - 1 - this.#below(2))
    const make = this.pick([
      () => `(${number()} ${this.pick(['+', '-', '*', '/', '//', '%'])} ${number()})`,
      () => `${this.pick(['abs', 'ceil', 'floor', 'round', 'trunc', 'sign'])}(${number()})`,
      () => `${this.pick(['length', 'strlen'])}(${this.#text(depth - 1)})`,
      () => `${this.pick(['strpos', 'instr'])}(${this.#text(depth - 1)}, ${this.#text(depth - 2)})`,
      () => `position(${this.#constant()} IN ${this.#text(depth - 1)})`,
      () => `${this.pick(['year', 'month', 'day', 'hour', 'epoch', 'epoch_ms', 'week'])}(${this.#time(depth - 1)})`,
      () => `date_part('${this.pick(['hour', 'year', mark])}', ${this.#time(depth - 1)})`,
      () => `extract(${this.pick(['month', 'day', 'epoch'])} FROM ${this.#time(depth - 1)})`,
      () => `${this.pick(['len', 'array_length'])}(${this.#list(depth - 1)})`,
      () => `${this.pick(['CAST', 'TRY_CAST'])}(${this.#any(depth - 1)} AS ${this.pick(['DOUBLE', 'BIGINT', 'DECIMAL(9,2)'])})`,
      () => `CASE WHEN ${this.#boolean(depth - 2)} THEN ${number()} ELSE ${number()} END`,
      () => `${this.pick(['greatest', 'least', 'coalesce'])}(${number()}, ${number()})`,
      () => `-(${number()})`,
    ])
    return make()
  }

  #time(depth: number): string {
    if (depth <= 0) return this.pick(['paid', '$$.ingested_at', "TIMESTAMP '2026-01-01T00:00:00Z'", "DATE '2026-01-01'"])
    const time = () => this.#time(depth - 1)
    const make = this.pick([
      () => `${this.pick(['epoch_s', 'epoch_ms', 'epoch_us', 'epoch_ns'])}(${this.#number(depth - 1)})`,
      () => `strptime(${this.#text(depth - 1)}, '${this.pick(formats)}')`,
      () => `date_trunc('${this.pick(['day', 'hour', 'week', mark])}', ${time()})`,
      () => `at_zone(${time()}, '${this.pick(zones)}')`,
      () => `${this.pick(['CAST', 'TRY_CAST'])}(${this.#text(depth - 1)} AS TIMESTAMP)`,
      () => `CASE WHEN ${this.#boolean(depth - 2)} THEN ${time()} ELSE ${time()} END`,
      () => `coalesce(${time()}, ${time()})`,
    ])
    return make()
  }

  #list(depth: number): string {
    if (depth <= 0) return 'tags'
    const make = this.pick([
      () => `[${this.#text(depth - 1)}, ${this.#text(depth - 1)}]`,
      () => `json_keys(${this.pick(['doc', 'CAST(name AS JSON)', "'{}'"])})`,
      () => `coalesce(${this.#list(depth - 1)}, ${this.#list(depth - 1)})`,
      () => `CAST(${this.#text(depth - 1)} AS ${this.pick(['VARCHAR[]', 'DATE[]', 'TIMESTAMP[]'])})`,
    ])
    return make()
  }

  #boolean(depth: number): string {
    if (depth <= 0) return this.pick(['TRUE', 'FALSE', 'NULL', 'amount > 5', "name = 'x'"])
    const boolean = () => this.#boolean(depth - 1)
    const text = () => this.#text(depth - 1)
    const make = this.pick([
      () => `(${boolean()} ${this.pick(['AND', 'OR'])} ${boolean()})`,
      () => `(NOT ${boolean()})`,
      () => `${this.#number(depth - 1)} ${this.pick(['=', '<>', '<', '>='])} ${this.#number(depth - 1)}`,
      () => `${text()} ${this.pick(['=', '<>', '<', 'IS DISTINCT FROM'])} ${text()}`,
      () => `${this.#time(depth - 1)} ${this.pick(['=', '<', '>='])} ${this.pick([this.#time(depth - 1), "'2026-01-01'"])}`,
      () => `${text()} ${this.pick(['LIKE', 'NOT LIKE', 'ILIKE'])} ${this.#constant()}`,
      () => `${text()} LIKE ${this.#constant()} ESCAPE '${this.pick(['\\', '!', "''"])}'`,
      () => `${text()} ${this.pick(['SIMILAR TO', '~'])} '${this.pick(patterns)}'`,
      () => `${this.pick(['regexp_matches', 'regexp_full_match'])}(${text()}, '${this.pick(patterns)}')`,
      () => `${text()} ${this.pick(['IN', 'NOT IN'])} (${text()}, ${this.#constant()})`,
      () => `${this.#number(depth - 1)} BETWEEN ${this.#number(depth - 2)} AND ${this.#number(depth - 2)}`,
      () => `${this.#any(depth - 1)} IS ${this.pick(['NULL', 'NOT NULL'])}`,
      () => `${this.pick(['starts_with', 'ends_with', 'contains', 'prefix', 'suffix'])}(${text()}, ${text()})`,
      () => `list_contains(${this.#list(depth - 1)}, ${text()})`,
      () => `${this.pick(['isnan', 'isinf', 'isfinite'])}(CAST(${this.#number(depth - 1)} AS DOUBLE))`,
    ])
    return make()
  }

  #any(depth: number): string {
    return [() => this.#text(depth), () => this.#number(depth), () => this.#time(depth), () => 'doc'][this.#below(4)]?.() ?? 'doc'
  }

  /** Returns an expression by the grammar of SQL alone. */
  #wild(depth: number): string {
    if (depth <= 0) {
      return this.pick([
        this.#constant(),
        this.#quotedPart(),
        this.pick(fields),
        this.#number(0),
        'name',
        'NULL',
        '*',
        '?',
        '$1',
        'nope',
      ])
    }
    const inner = () => this.#wild(depth - 1 - this.#below(3))
    const make = this.pick([
      () => `${this.pick(wildNames)}(${Array.from({ length: this.#below(4) }, inner).join(', ')})`,
      () => `${inner()} ${this.pick(operators)} ${inner()}`,
      () => `${this.pick(['CAST', 'TRY_CAST'])}(${inner()} AS ${this.pick(typeNames)})`,
      () => `${inner()}::${this.pick(typeNames)}`,
      () => `(SELECT ${inner()} FROM records)`,
      () => `EXISTS (SELECT ${inner()})`,
      () => `${inner()} OVER (PARTITION BY ${inner()})`,
      () => `list_transform(tags, lambda x: ${inner()})`,
      () => `(${inner()})[${inner()}:${inner()}]`,
      () => `lower(DISTINCT ${inner()} ORDER BY ${inner()})`,
      () => `lower(${inner()}) FILTER (WHERE ${inner()})`,
      () => `{'${mark}': ${inner()}}`,
      () => `(${inner()}).${mark}`,
      () => `struct_pack(${mark} := ${inner()})`,
      () => `${inner()} COLLATE ${mark}`,
      () => `CASE ${inner()} WHEN ${inner()} THEN ${inner()} END`,
      () => `${inner()}, ${inner()}`,
      () => `${inner()} FROM read_text('/etc/passwd')`,
      () => `${inner()} ${this.garbage(2)}`,
    ])
    return make()
  }

  #deep(): string {
    const [before, middle, after] = this.pick([
      ['(', 'amount > 1', ')'],
      ['NOT ', 'TRUE', ''],
      ['- ', '1', ''],
      ['-', '1', ''],
      ['lower(', 'name', ')'],
      ['[', "'a'", ']'],
      ['CASE WHEN TRUE THEN ', "'a'", ' END'],
      ['CAST(', 'name', ' AS VARCHAR)'],
      ['', 'name', '::VARCHAR'],
      ['', 'tags', '[1]'],
      ["'a' || ", 'name', ''],
      ['amount > 1 AND ', 'TRUE', ''],
      ['replace(', 'name', ", 'a', 'aaaa')"],
      ['coalesce(name, ', "''", ')'],
      ['/*', mark, '*/'],
      ["E'\\'", mark, "'"],
      ['(SELECT ', '1', ')'],
    ] as const)
    const most = Math.floor((definitionLimits.conditionCharsMax - middle.length) / Math.max(1, before.length + after.length))
    const depth = this.#below(3) === 0 ? 1 + this.#below(80) : 1 + this.#below(most)
    return before.repeat(depth) + middle + after.repeat(this.#below(8) === 0 ? this.#below(depth + 2) : depth)
  }

  /** Returns an expression with a literal, a name or a comment that ends elsewhere than a reader may think. */
  #quoted(type: string): { readonly text: string; readonly type: string } {
    const part = this.#quotedPart()
    const made = this.pick([
      { text: `name || ${part}`, type: 'VARCHAR' },
      { text: `concat(name, ${part}, ${this.#quotedPart()})`, type: 'VARCHAR' },
      { text: `name = ${part}`, type: 'BOOLEAN' },
      { text: `name LIKE ${part}`, type: 'BOOLEAN' },
      { text: `regexp_matches(name, ${part})`, type: 'BOOLEAN' },
      { text: `paid > ${part}`, type: 'BOOLEAN' },
      { text: `split_part(name, ${part}, 1)`, type: 'VARCHAR' },
      { text: `url_param(name, ${part})`, type: 'VARCHAR' },
      { text: `strptime(name, ${part})`, type: 'TIMESTAMP' },
      { text: `hmac_sha256(${part}, name)`, type: 'VARCHAR' },
      { text: `at_zone(paid, ${part})`, type: 'TIMESTAMP' },
      { text: `CAST(${part} AS ${this.pick(typeNames)})`, type },
      { text: `replace(name, ${part}, ${this.#quotedPart()})`, type: 'VARCHAR' },
    ])
    return made
  }

  #quotedPart(): string {
    const inside = this.#below(2) === 0 ? this.pick(hostileTexts) : this.garbage(4)
    const wrap = this.pick([
      (text: string) => `'${text.replaceAll("'", "''")}'`,
      (text: string) => `'${text}'`,
      (text: string) => `"${text.replaceAll('"', '""')}"`,
      (text: string) => `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`,
      (text: string) => `E'${text}'`,
      (text: string) => `E'\\x27${text}\\u0027'`,
      (text: string) => `U&'\\0027${text}'`,
      (text: string) => `X'${Buffer.from(text).toString('hex')}'`,
      (text: string) => `$$${text}$$`,
      (text: string) => `$${mark}$${text}$${mark}$`,
      (text: string) => `'a' /* ${text} */`,
      (text: string) => `'a' -- ${text}\n`,
      (text: string) => `'a'\n'${text.replaceAll("'", "''")}'`,
      (text: string) => `$$.headers['${text}']`,
      (text: string) => `$$.user_properties."${text}"`,
    ])
    return wrap(inside)
  }
}
