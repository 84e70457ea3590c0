/** Words for DuckDB's errors about the types of a condition. Other errors keep DuckDB's words, without their kind. */
const mixed = /Cannot (?:compare|mix|combine) (?:values of type|types of) (.+?) and (?:type )?(.+?)(?: in .*)? - an explicit cast/
const unclear = /Could not choose a best candidate function for the function call "(.+?)\((.*)\)"/
const noFunction = /No function matches the given name and argument types '(.+?)\((.*)\)'/

/** `function` is the one whose arguments do not fit, if it is about one. */
export function typeProblem(line: string): { readonly message: string; readonly function?: string } {
  const [, one, other] = mixed.exec(line) ?? []
  if (one !== undefined && other !== undefined) {
    const message = `does not fit the columns: it uses ${inWords(one)} and ${inWords(other)} as if they had one type: cast one of them, such as CAST(… AS VARCHAR)`
    return { message }
  }
  const [, unclearName, unclearTypes = ''] = unclear.exec(line) ?? []
  if (unclearName !== undefined) {
    return {
      message: `does not fit the columns: ${JSON.stringify(unclearName)} has several meanings for (${inWords(unclearTypes)}): cast to the type that is meant, such as CAST(… AS DOUBLE)`,
      function: unclearName,
    }
  }
  const [, name, types] = noFunction.exec(line) ?? []
  if (name === undefined || types === undefined) {
    return { message: `does not fit the columns: ${line.replace(/^[A-Z][A-Za-z ]* Error: /, '')}` }
  }
  return {
    message: `does not fit the columns: ${JSON.stringify(name)} does not take (${inWords(types)}): cast to the type that it takes, such as CAST(… AS VARCHAR)`,
    function: name,
  }
}

function inWords(types: string): string {
  return types.replace(/INTEGER_LITERAL/g, 'a number').replace(/STRING_LITERAL/g, 'a text')
}
