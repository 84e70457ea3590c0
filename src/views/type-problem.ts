/** Words for DuckDB's errors about the types of a condition. Other errors keep DuckDB's words. */
const mixed = /Cannot (?:compare|mix|combine) (?:values of type|types of) (.+?) and (?:type )?(.+?)(?: in .*)? - an explicit cast/
const noFunction = /No function matches the given name and argument types '(.+?)\((.*)\)'/

export function typeProblem(line: string): string {
  const [, one, other] = mixed.exec(line) ?? []
  if (one !== undefined && other !== undefined) {
    return `does not fit the columns: it uses ${inWords(one)} and ${inWords(other)} as if they had one type: cast one of them, such as CAST(… AS VARCHAR)`
  }
  const [, name, types] = noFunction.exec(line) ?? []
  if (name === undefined || types === undefined) return `does not fit the columns: ${line}`
  return `does not fit the columns: ${JSON.stringify(name)} does not take (${inWords(types)}): cast to the type that it takes, such as CAST(… AS VARCHAR)`
}

function inWords(types: string): string {
  return types.replace(/INTEGER_LITERAL/g, 'a number').replace(/STRING_LITERAL/g, 'a text')
}
