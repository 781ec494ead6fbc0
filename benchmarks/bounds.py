"""Bounds and categories of the benchmark tables: fixed constants, taken as public.

Comparisons on these tables commonly use these values, so that figures can be compared.
"""

ADULT_WORDS = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked ?",
    "education": "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th 10th "
    "Doctorate 5th-6th Preschool",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
    "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces ?",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan Greece "
    "South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic "
    "Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago "
    "Peru Hong Holand-Netherlands ?",
}
ADULT_CATEGORIES = {column: words.split() for column, words in ADULT_WORDS.items()}
ADULT_RANGES = {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99)}
ADULT_LOGARITHMS = {"capital-gain": 99999, "capital-loss": 4356}

BANK_WORDS = {
    "job": "admin. blue-collar entrepreneur housemaid management retired self-employed services student technician unemployed "
    "unknown",
    "marital": "divorced married single",
    "education": "primary secondary tertiary unknown",
    "default": "yes",
    "housing": "yes",
    "loan": "yes",
    "contact": "cellular telephone unknown",
    "month": "jan feb mar apr may jun jul aug sep oct nov dec",
    "poutcome": "failure other success unknown",
}
BANK_CATEGORIES = {column: words.split() for column, words in BANK_WORDS.items()}
BANK_RANGES = {"age": (18, 95), "day": (1, 31)}
BANK_LOGARITHMS = {"balance": 1e5, "duration": 5000, "campaign": 63, "pdays": 900, "previous": 300}

CALIFORNIA_CATEGORIES = {"ocean_proximity": ["<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN"]}
CALIFORNIA_RANGES = {"longitude": (-125, -114), "latitude": (32, 42), "housing_median_age": (1, 52), "median_income": (0, 15.1)}
CALIFORNIA_LOGARITHMS = {"total_rooms": 40_000, "total_bedrooms": 6500, "population": 36_000, "households": 6100}
CALIFORNIA_TARGET = {"median_house_value": (0, 500_001)}

BIKE_CATEGORIES = {
    "season": range(1, 5),
    "mnth": range(1, 13),
    "hr": range(24),
    "weekday": range(7),
    "weathersit": range(1, 5),
}
BIKE_RANGES = {name: (0, 1) for name in ("yr", "holiday", "workingday", "temp", "atemp", "hum", "windspeed")}
BIKE_TARGET = {"cnt": (0, 1000)}

COVERTYPE_RANGES = {  # of the first columns, in the order of the file
    "elevation": (1859, 3858),
    "aspect": (0, 360),
    "slope": (0, 66),
    "horizontal distance to water": (0, 1397),
    "vertical distance to water": (-173, 601),
    "distance to roads": (0, 7117),
    "hillshade at 9": (0, 254),
    "hillshade at noon": (0, 254),
    "hillshade at 15": (0, 254),
    "distance to fire points": (0, 7173),
}
SPAMBASE_LOGARITHMS = {"average run of capitals": 1200, "longest run": 10_000, "total of capitals": 16_000}
