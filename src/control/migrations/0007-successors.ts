/** Index for finding the key that replaced another one, which every list of keys shows. */

export const SUCCESSORS_SQL = `
create index keys_rotated_from on touchdown.keys (rotated_from) where rotated_from is not null;
`;
