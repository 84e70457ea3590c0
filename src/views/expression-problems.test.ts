/** Keeps what authors of expressions read: the code, the message, and the place. `npx vitest -u` writes the file anew: read what changed. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { AppError } from '#errors.ts'
import type { Definition } from '#model/definition.ts'
import { runs } from '../../test/support/thorough.ts'
import { compileView } from './compile.ts'
import { originalIndex, withQuotedFields } from './envelope-fields.ts'
import { excerptOf } from './excerpt.ts'

const columns: Definition['columns'] = [
  { name: 'amount', type: 'DOUBLE', path: '$.amount' },
  { name: 'größe', type: 'BIGINT', path: '$.n' },
  { name: 'name', type: 'VARCHAR', path: '$.name' },
  { name: 'paid', type: 'TIMESTAMP', path: '$.paid' },
  { name: 'tags', type: 'VARCHAR[]', path: '$.tags[*]' },
  { name: 'doc', type: 'JSON', path: '$.doc' },
]

const values: readonly (readonly [type: string, text: string])[] = [
  ['DOUBLE', 'round(amonut * 2, 2)'],
  ['DOUBLE', '"größe" + amonut'],
  ['VARCHAR', 'lower($$.topic) || upper(nmae)'],
  ['VARCHAR', "coalesce($$.tpoic, 'x')"],
  ['DOUBLE', 'amount * 2 +'],
  ['DOUBLE', 'amount * (2'],
  ['VARCHAR', 'CASE WHEN amount > 1\n     THEN name\n     ELSE lowr(name)\nEND'],
  ['VARCHAR', 'repeat(name, 1000)'],
  ['VARCHAR', "name || (SELECT 'x')"],
  ['TIMESTAMP', 'now()'],
  ['BIGINT', 'CAST(name AS BIGNT)'],
  ['BIGINT', 'name'],
  ['VARCHAR', 'amount'],
  ['BIGINT', 'length(amount, 5)'],
  ['VARCHAR', 'upper(lower(name, name))'],
  ['BOOLEAN', 'name > 5'],
  ['BOOLEAN', 'paid > 5'],
  ['BOOLEAN', "paid > 'yesterday'"],
  ['DOUBLE', 'name * 2'],
  ['BIGINT', 'paid - paid'],
  ['BOOLEAN', "name LIKE lower('X')"],
  ['BOOLEAN', "regexp_matches(name, '(')"],
  ['VARCHAR', "regexp_extract(name, 'a', 3)"],
  ['BOOLEAN', `regexp_matches(name, '(${'a'.repeat(50)}){200}')`],
  ['VARCHAR', `${'('.repeat(70)}name${')'.repeat(70)} || x`],
  ['VARCHAR', Array(120).fill('name').join(' || ')],
  ['VARCHAR', 'name; DROP TABLE records'],
  ['VARCHAR', 'name, amount'],
  ['VARCHAR', "name || ';' ; SELECT 1"],
  ['VARCHAR', 'name AS other'],
  ['VARCHAR', 'sum(name)'],
  ['VARCHAR', 'row_number() OVER ()'],
  ['VARCHAR', 'tags[1][2:3]'],
  ['VARCHAR', 'name COLLATE NOCASE'],
  ['DOUBLE', '1e999'],
  ['VARCHAR', 'c'],
  ['VARCHAR', 'name || upper(c)'],
  ['TIMESTAMP', 'paid + INTERVAL 1 DAY'],
  ['TIMESTAMP', "paid + INTERVAL '1 day'"],
  ['VARCHAR', 'sha256(name, 2)'],
  ['VARCHAR', "replace(name, 'a', 'b', name)"],
  ['VARCHAR', "hmac_sha256('email_key')"],
  ['VARCHAR', 'mask_ip(amount)'],
  ['VARCHAR', "substr(name, 'a')"],
  ['VARCHAR', "substr(name, 1, 'a')"],
  ['VARCHAR', "left(name, 'a')"],
  ['DOUBLE', "round('x')"],
  ['DOUBLE', "round(2.5, 'x')"],
  ['VARCHAR', "tags['x']"],
  ['VARCHAR', "doc['x']"],
  ['TIMESTAMP', 'epoch_s(name)'],
  ['TIMESTAMP', "at_zone(name, 'UTC')"],
  ['VARCHAR', 'hmac_sha256(name, name)'],
  ['VARCHAR', "hmac_sha256('Key', name)"],
  ['VARCHAR', "upper(hmac_sha256('emial_key', name))"],
  ['VARCHAR', "hmac_sha256('email_key', amount)"],
  ['VARCHAR', '   '],
  ['VARCHAR', 'upper($.name)'],
  ['VARCHAR', 'concat($$.topic, $item.sku)'],
  ['VARCHAR', "doc->'a'"],
  ['VARCHAR', "lower(doc->>'a')"],
  ['VARCHAR', 'name || $1'],
  ['BIGINT', 'abs(name)'],
  ['BIGINT', 'year(name)'],
  ['BIGINT', 'year(amount)'],
  ['BIGINT', 'array_length(doc)'],
  ['VARCHAR', 'upper(tags)'],
  ['BOOLEAN', 'list_contains(tags, 1)'],
  ['DOUBLE', 'paid * 2'],
  ['VARCHAR', 'substr(name, name)'],
  ['VARCHAR', 'tags[name]'],
  ['VARCHAR', 'lower(name) || lower(name, name)'],
  ['VARCHAR', 'name || coalesce(name, 5)'],
  ['BOOLEAN', 'amount > 1 AND amount < (amount > 2)'],
  ['BOOLEAN', 'amount > 1 AND name'],
  ['BOOLEAN', "amount > 1 AND paid < 'yesterday'"],
  ['BOOLEAN', "amount > 1 AND regexp_matches(name, 'a(')"],
  ['VARCHAR', "split_part(name, ',', 0)"],
  ['TIMESTAMP', "at_zone(paid, 'CST')"],
  ['TIMESTAMP', "strptime(name, '%Y%')"],
  ['TIMESTAMP', "strptime(name, '%s')"],
  ['TIMESTAMP', "strptime(name, '%d.%m.')"],
  ['TIMESTAMP', "date_trunc('dya', paid)"],
  ['BIGINT', "date_part('dya', CAST(NULL AS TIMESTAMP))"],
  ['BIGINT', "date_part('timezone_hour', CAST(paid AS DATE))"],
  ['TIMESTAMP', 'date_trunc(name, paid)'],
  ['VARCHAR', "x'41'"],
  ['VARCHAR', "name || E'\\ud800'"],
  ['VARCHAR', '-- nothing'],
  ['BIGINT', 'order + 1'],
  ['VARCHAR', "name || 'a"],
  ['VARCHAR', 'if(amount > 1, name, bc)'],
  ['BOOLEAN', `${'NOT '.repeat(1_010)}TRUE`],
]

test('each problem has a code, a message and a place', async () => {
  const shown: string[] = []
  for (const [type, value] of values) {
    const error = await compileView(
      { columns: [...columns, { name: 'c', type, value }] },
      { secrets: ['email_key'], isNew: true },
    ).then(
      () => undefined,
      (problem: AppError) => problem,
    )
    const [{ path = '', code = '', message = '', excerpt = '(no place)' } = {}, ...more] = error?.errors ?? []
    expect(more).toEqual([])
    expect([path, value]).toEqual(['columns.6.value', value])
    const written = value.length > 200 ? `${value.slice(0, 200)}…` : value
    shown.push(`${type}: ${written}\n${code}: ${message}\n${excerpt.replace(/^/gm, '    ')}\n`)
  }
  await expect(shown.join('\n')).toMatchFileSnapshot('./expression-problems.txt')
})

test('the place is that in the text of the author, whatever stands before it', () => {
  const word = fc.constantFrom(
    '$$.topic',
    "'$$.x'",
    '"$$.y"',
    'a',
    ' ',
    '\n',
    'ü',
    '😀',
    `$$.headers['x y']`,
    '$$.user_properties."s"',
    '-- $$.z\n',
  )
  fc.assert(
    fc.property(fc.array(word, { maxLength: 8 }), (words) => {
      const before = words.join(' ')
      const text = `${before} HERE`
      const quoted = withQuotedFields(text)
      expect(originalIndex(text, quoted.lastIndexOf('HERE'))).toBe(before.length + 1)
      const [line = '', caret = ''] = excerptOf(text, Buffer.byteLength(quoted.slice(0, quoted.lastIndexOf('HERE')))).split('\n')
      expect(line.slice(caret.length - 1)).toBe('HERE')
    }),
    { numRuns: runs(300, 5_000) },
  )
})
