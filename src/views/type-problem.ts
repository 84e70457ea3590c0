/**
 * Words for DuckDB's errors about the types of an expression: which argument does not fit, what it must be, and what to write. Other errors keep
 * DuckDB's words, without their kind.
 */
import { quoted } from './condition.ts'

const mixed = /Cannot (?:compare|mix|combine) (?:values of type|types of) (.+?) and (?:type )?(.+?)(?: in .*)? - an explicit cast/
const unclear = /Could not choose a best candidate function for the function call "(.+?)\((.*)\)"/
const noFunction = /No function matches the given name and argument types '(.+?)\((.*)\)'/
const noType = /Cannot deduce template type/

/** `argument` is the one that does not fit, if it is known. */
export type TypeProblem = { readonly message: string; readonly argument?: number }

/** A function that is called, as DuckDB names it, and its arguments as the author wrote them: a column, or an ellipsis. */
export type Called = { readonly name: string; readonly arguments: readonly string[] }

/** `error` has DuckDB's list of candidates. */
export function typeProblem(error: string, called: Called | undefined): TypeProblem {
  const [line = ''] = error.split('\n')
  const [, one, other] = mixed.exec(line) ?? []
  if (one !== undefined && other !== undefined) {
    return {
      message: `does not fit the columns: it uses ${inWords(one)} and ${inWords(other)} as if they had one type: cast one of them, such as CAST(… AS VARCHAR)`,
    }
  }
  const [, unclearName, unclearTypes = ''] = unclear.exec(line) ?? []
  if (unclearName !== undefined) {
    return {
      message: `does not fit the columns: ${JSON.stringify(unclearName)} has several meanings for (${inWords(unclearTypes)}): cast to the type that is meant, such as CAST(… AS DOUBLE)`,
    }
  }
  if (noType.test(line))
    return { message: 'has a NULL or an empty list whose type is not known: cast it, such as CAST(NULL AS VARCHAR[])' }
  const [, name, types] = noFunction.exec(line) ?? []
  if (name === undefined || types === undefined)
    return { message: `does not fit the columns: ${line.replace(/^[A-Z][A-Za-z ]* Error: /, '')}` }
  return misfit(name, splitTypes(types), candidatesIn(error, name), called)
}

function misfit(
  name: string,
  given: readonly string[],
  candidates: readonly string[][],
  called: Called | undefined,
): TypeProblem {
  const isOperator = !/^\w+$/.test(name)
  const isIndex = name === 'array_extract'
  const isKnown = called?.name === name && called.arguments.length === given.length
  const said = isIndex ? '[…]' : quoted(name)
  const counts = [...new Set(candidates.map(({ length }) => length))].toSorted((a, b) => a - b)
  const most = counts.at(-1)
  if (!counts.includes(given.length) && most !== undefined) {
    const message = `${said} takes ${counts.join(' or ')} ${most === 1 ? 'value' : 'values'}, not ${given.length}`
    return isKnown && given.length > most ? { message, argument: most } : { message }
  }
  const fitting = candidates.filter(
    ({ length, 0: first }) => length === given.length && first !== 'STRUCT' && !first?.startsWith('MAP'),
  )
  const argument = given.findIndex((type, at) => !fitting.some((each) => fits(type, each[at] ?? '')))
  const wanted = wantedOf(fitting.map((each) => each[argument] ?? ''))
  const type = given[argument]
  if (type === undefined || wanted === undefined) {
    const shown = given.map(inWords).join(', ')
    return {
      message: `${said} does not take (${shown})${isOperator ? '' : ': cast to the type that it takes, such as CAST(… AS VARCHAR)'}`,
    }
  }
  const written = (isKnown ? called.arguments[argument] : undefined) ?? '…'
  const what = isIndex && argument === 0 ? 'a list or text' : words[wanted]
  const message = `${said} takes ${what}, not ${inWords(type)}: ${adviceFor(type, wanted, written)}`
  return isKnown ? { message, argument } : { message }
}

const words = { VARCHAR: 'text', DOUBLE: 'a number', BIGINT: 'a whole number', TIMESTAMP: 'a time', list: 'a list' } as const
type Wanted = keyof typeof words

/** Returns the type that an author most likely means. */
function wantedOf(types: readonly string[]): Wanted | undefined {
  if (types.some((type) => type.endsWith('[]')) && !types.includes('VARCHAR')) return 'list'
  return (['VARCHAR', 'DOUBLE', 'TIMESTAMP', 'BIGINT'] as const).find((type) => types.includes(type))
}

function adviceFor(type: string, wanted: Wanted, written: string): string {
  if (wanted === 'list') return `cast it, such as CAST(${written} AS VARCHAR[])`
  if (type.endsWith('[]')) return `take an item of the list, such as ${written}[1]`
  const isTime = /^(TIMESTAMP|DATE)/.test(type)
  if (isTime && wanted === 'DOUBLE') return `use epoch(${written}) for its seconds`
  const isNumber = /INT|^(DOUBLE|FLOAT|DECIMAL)/.test(type)
  if (isNumber && wanted === 'TIMESTAMP') return `make a time of it, such as epoch_s(${written})`
  return `cast it, such as CAST(${written} AS ${wanted})`
}

/** Whether a value of a type is one of a parameter. Literals become what they must be. */
function fits(type: string, parameter: string): boolean {
  if (parameter === type || /^(ANY|T)$/.test(parameter) || type === 'STRING_LITERAL' || type === '"NULL"') return true
  if (/^(ANY|T)\[\]$/.test(parameter)) return type.endsWith('[]')
  const isNumber = /INT|^(DOUBLE|FLOAT|DECIMAL)/.test(type)
  return isNumber && /INT$|^(DOUBLE|FLOAT|DECIMAL)/.test(parameter)
}

/** Returns the types of the parameters of each function that has the name. */
function candidatesIn(error: string, name: string): readonly string[][] {
  return error.split('\n').flatMap((line) => {
    const text = line.trim()
    const end = text.lastIndexOf(') -> ')
    return text.startsWith(`${name}(`) && end !== -1 ? [[...splitTypes(text.slice(name.length + 1, end))]] : []
  })
}

/** Splits at commas, other than those of DECIMAL(9,2). */
function splitTypes(types: string): readonly string[] {
  return types === '' ? [] : types.split(/, (?![^()]*\))/)
}

function inWords(types: string): string {
  return splitTypes(types)
    .map((type) => {
      if (type === 'INTEGER_LITERAL') return 'a number'
      if (type === 'STRING_LITERAL' || type === 'VARCHAR') return 'text'
      if (type === '"NULL"') return 'NULL'
      return type === 'JSON' ? type : type.endsWith('[]') ? 'a list' : `a ${type}`
    })
    .join(', ')
}
